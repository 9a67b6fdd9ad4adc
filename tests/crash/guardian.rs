//! A shell script that has something which must not be left behind: it does what it is told, line
//! by line, and clears up when standard input ends, which it does with this process, however that
//! comes about.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdout, Command, Stdio},
};

/// Told to end, and waited for, when it is dropped.
pub(crate) struct Guardian {
    script: Child,
    answers: BufReader<ChildStdout>,
}

impl Guardian {
    /// Starts the script, and gives what it says first: nothing if it could not do its work.
    pub(crate) fn start(script: &mut Command) -> (Self, String) {
        let mut script = script
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(script.stdout.take().unwrap());
        let mut guardian = Self { script, answers };
        let first = guardian.line();
        (guardian, first)
    }

    /// The script's process.
    pub(crate) fn id(&self) -> u32 {
        self.script.id()
    }

    /// Has something done.
    pub(crate) fn order(&mut self, order: &str) {
        let stdin = self.script.stdin.as_mut().unwrap();
        writeln!(stdin, "{order}").unwrap();
        assert_eq!(self.line(), "done", "{order}");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}
