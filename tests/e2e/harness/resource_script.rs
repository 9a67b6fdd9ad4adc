//! A shell script that creates, controls and removes a resource: it executes commands from standard
//! input and removes the resource when that closes. It closes when this process exits or is killed.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    sync::{
        Mutex,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    time::Duration,
};

/// Far longer than a command takes.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Closes the script's standard input and waits for its exit when dropped.
pub(crate) struct ResourceScript {
    script: Child,
    /// The lines it prints. Closed once it has exited.
    lines: Mutex<Receiver<String>>,
}

impl ResourceScript {
    /// Starts the script and returns its first line: empty if the script failed.
    pub(crate) fn start(script: &mut Command) -> (Self, String) {
        let mut script = script
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(script.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // Fails once the receiver is dropped.
                let _ = sender.send(line);
            }
        });
        let lines = Mutex::new(lines);
        let resource_script = Self { script, lines };
        let first = resource_script.read_line();
        (resource_script, first)
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

    /// The next line; empty if the script has exited.
    fn read_line(&self) -> String {
        match self.lines.lock().unwrap().recv_timeout(TIMEOUT) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => String::new(),
            Err(RecvTimeoutError::Timeout) => panic!("the script is not done within {TIMEOUT:?}"),
        }
    }
}

impl Drop for ResourceScript {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}
