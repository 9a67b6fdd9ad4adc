//! A server process: started, killed, terminated and restarted with the same arguments.

use std::{
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use tokio::sync::watch;

use crate::program::{self, PROGRAMS};

/// Far longer than a start takes.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// Longer than the 30 s that a program takes at most to drain.
const EXIT_TIMEOUT: Duration = Duration::from_secs(40);

/// The number of last lines printed when a test fails.
const SHOWN_LINES: usize = 40;

/// A program, its arguments and its running process. Killed when it is dropped.
pub(crate) struct Server {
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    /// The text it prints when it is ready, and how many times.
    ready: (&'static str, usize),
    running: Option<Running>,
    /// The output of its earlier runs.
    earlier_output: Vec<String>,
}

struct Running {
    process: Child,
    /// Every line it has printed. Closed once it has exited.
    output: watch::Receiver<Vec<String>>,
}

impl Server {
    pub(crate) fn new(
        name: &str,
        program: &Path,
        arguments: Vec<String>,
        ready: (&'static str, usize),
    ) -> Self {
        Self {
            name: name.to_owned(),
            program: program.to_owned(),
            arguments,
            environment: Vec::new(),
            ready,
            running: None,
            earlier_output: Vec::new(),
        }
    }

    /// A core that is not started yet.
    pub(crate) fn core(name: &str, arguments: Vec<String>) -> Self {
        Self::new(name, &PROGRAMS.core, arguments, ("serving addr", 1))
    }

    /// A gateway that is not started yet.
    pub(crate) fn gateway(name: &str, arguments: Vec<String>) -> Self {
        let ready = ("serving the REST API", 1);
        Self::new(name, &PROGRAMS.gateway, arguments, ready)
    }

    /// Adds an environment variable.
    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds an argument for its next start.
    pub(crate) fn add_argument(&mut self, argument: &str) {
        self.arguments.push(argument.to_owned());
    }

    /// Sets the program of its next start.
    pub(crate) fn set_program(&mut self, program: &Path) {
        program.clone_into(&mut self.program);
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The id of the running process.
    pub(crate) fn id(&self) -> u32 {
        self.running.as_ref().unwrap().process.id()
    }

    /// The number in a line of `/proc/<id>/status`.
    pub(crate) fn status(&self, line: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let value = status.lines().find_map(|found| found.strip_prefix(line));
        let number = value.and_then(|value| value.split_whitespace().next());
        number.unwrap().parse().unwrap()
    }

    /// Starts it and waits until it is ready.
    pub(crate) async fn start(&mut self) {
        assert!(self.running.is_none(), "{} is already running", self.name);
        let mut process = program::command(&self.program)
            .args(&self.arguments)
            .envs(self.environment.clone())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = watch::Sender::new(Vec::new());
        let output = lines.subscribe();
        read(process.stdout.take().unwrap(), lines.clone());
        read(process.stderr.take().unwrap(), lines);
        let running = self.running.insert(Running { process, output });

        let (text, times) = self.ready;
        let mut output = running.output.clone();
        let is_ready = output.wait_for(|lines| {
            let matching = lines.iter().filter(|line| line.contains(text));
            matching.count() >= times
        });
        let is_ready = tokio::time::timeout(START_TIMEOUT, is_ready).await;
        let is_ready = is_ready.unwrap_or_else(|_| panic!("{} is not ready", self.name));
        assert!(is_ready.is_ok(), "{} exited before it was ready", self.name);
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        let mut running = self.running.take().unwrap();
        running.process.kill().unwrap();
        running.process.wait().unwrap();
        self.earlier_output
            .extend_from_slice(&running.output.borrow());
    }

    /// Sends SIGTERM and waits for the exit.
    pub(crate) async fn terminate(&mut self) -> ExitStatus {
        self.signal("-TERM");
        self.wait_for_exit().await
    }

    /// Sends a signal, such as `-TERM`.
    pub(crate) fn signal(&self, signal: &str) {
        let kill = format!("kill {signal} {}", self.id());
        let sent = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(sent.success());
    }

    /// Every line it has printed.
    pub(crate) fn output(&self) -> Vec<String> {
        self.running.as_ref().unwrap().output.borrow().clone()
    }

    /// Waits for a line that contains a text, and returns it.
    pub(crate) async fn wait_for_line(&self, text: &str) -> String {
        self.wait_for_lines(text, 1).await
    }

    /// Waits for several lines that contain a text, and returns the last.
    pub(crate) async fn wait_for_lines(&self, text: &str, count: usize) -> String {
        let mut output = self.running.as_ref().unwrap().output.clone();
        let find = |lines: &Vec<String>| {
            let mut matching = lines.iter().filter(|line| line.contains(text));
            matching.nth(count - 1).cloned()
        };
        let found = output.wait_for(|lines| find(lines).is_some());
        let found = tokio::time::timeout(START_TIMEOUT, found).await;
        let found = found.unwrap_or_else(|_| panic!("{} does not print {text:?}", self.name));
        find(&found.unwrap()).unwrap()
    }

    /// Waits for the exit.
    pub(crate) async fn wait_for_exit(&mut self) -> ExitStatus {
        let running = self.running.as_mut().unwrap();
        let exit = async { while running.output.changed().await.is_ok() {} };
        let exit = tokio::time::timeout(EXIT_TIMEOUT, exit).await;
        assert!(
            exit.is_ok(),
            "{} did not exit within {EXIT_TIMEOUT:?}",
            self.name
        );
        let mut running = self.running.take().unwrap();
        self.earlier_output
            .extend_from_slice(&running.output.borrow());
        running.process.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            // Both fail if the process has already exited.
            let _ = running.process.kill();
            let _ = running.process.wait();
            self.earlier_output
                .extend_from_slice(&running.output.borrow());
        }
        if std::thread::panicking() {
            let last = self.earlier_output.len().saturating_sub(SHOWN_LINES);
            eprintln!(
                "--- {}\n{}",
                self.name,
                self.earlier_output[last..].join("\n")
            );
        }
    }
}

fn read(pipe: impl Read + Send + 'static, lines: watch::Sender<Vec<String>>) {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            lines.send_modify(|lines| lines.push(line));
        }
    });
}
