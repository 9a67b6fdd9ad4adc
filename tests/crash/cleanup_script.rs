//! A shell script that owns a resource: it executes commands from standard input and cleans up when
//! that closes, which happens when this process exits, even by a kill.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdout, Command, Stdio},
};

/// Closes the script's standard input and waits for its exit when dropped.
pub(crate) struct CleanupScript {
    script: Child,
    output: BufReader<ChildStdout>,
}

impl CleanupScript {
    /// Starts the script and returns its first line: empty if the script failed.
    pub(crate) fn start(script: &mut Command) -> (Self, String) {
        let mut script = script
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(script.stdout.take().unwrap());
        let mut cleanup_script = Self { script, output };
        let first = cleanup_script.read_line();
        (cleanup_script, first)
    }

    /// The id of the script's process.
    pub(crate) fn id(&self) -> u32 {
        self.script.id()
    }

    /// Executes a command and waits until it is done.
    pub(crate) fn execute(&mut self, command: &str) {
        let stdin = self.script.stdin.as_mut().unwrap();
        writeln!(stdin, "{command}").unwrap();
        assert_eq!(self.read_line(), "done", "{command}");
    }

    fn read_line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for CleanupScript {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}
