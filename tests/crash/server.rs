//! A program that serves: started, killed, ended and started again with the same arguments.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Read},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::Mutex,
    time::Duration,
};

use tokio::sync::watch;

use crate::program;

/// Far beyond what a start takes.
const START: Duration = Duration::from_mins(1);

/// Beyond the 30 s that a program gives what is in flight when it is told to end.
const END: Duration = Duration::from_secs(40);

/// How many of its last lines are shown when a test fails.
const LINES: usize = 40;

/// A program and how it is run. Killed when it is dropped.
pub(crate) struct Server {
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    /// What it prints when it serves, and how many times.
    ready: (&'static str, usize),
    running: Option<Running>,
    /// What it printed when it ran before.
    earlier: Vec<String>,
}

struct Running {
    process: Child,
    /// Every line it printed. Closed once it has ended.
    printed: watch::Receiver<Vec<String>>,
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
            earlier: Vec::new(),
        }
    }

    /// As it is, but with a variable in its environment.
    pub(crate) fn with_environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The running process.
    pub(crate) fn id(&self) -> u32 {
        self.running.as_ref().unwrap().process.id()
    }

    /// Starts it and waits until it serves.
    pub(crate) async fn start(&mut self) {
        assert!(self.running.is_none(), "{} runs already", self.name);
        let mut process = program::command(&self.program)
            .args(&self.arguments)
            .envs(self.environment.clone())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = watch::Sender::new(Vec::new());
        let printed = lines.subscribe();
        read(process.stdout.take().unwrap(), lines.clone());
        read(process.stderr.take().unwrap(), lines);
        let running = self.running.insert(Running { process, printed });

        let (text, times) = self.ready;
        let mut printed = running.printed.clone();
        let is_ready = printed.wait_for(|lines| {
            let matching = lines.iter().filter(|line| line.contains(text));
            matching.count() >= times
        });
        let served = tokio::time::timeout(START, is_ready).await;
        let is_ready = served.unwrap_or_else(|_| panic!("{} does not serve", self.name));
        assert!(is_ready.is_ok(), "{} ended before it served", self.name);
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        let mut running = self.running.take().unwrap();
        running.process.kill().unwrap();
        running.process.wait().unwrap();
        self.earlier.extend_from_slice(&running.printed.borrow());
    }

    /// Sends SIGTERM and waits for the end.
    pub(crate) async fn terminate(&mut self) -> ExitStatus {
        self.send("-TERM");
        self.ended().await
    }

    /// Sends a signal, such as `-TERM`.
    pub(crate) fn send(&self, signal: &str) {
        let kill = format!("kill {signal} {}", self.id());
        let sent = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits until it has printed a text, and gives the line.
    pub(crate) async fn printed(&self, text: &str) -> String {
        let mut printed = self.running.as_ref().unwrap().printed.clone();
        let find = |lines: &Vec<String>| lines.iter().find(|line| line.contains(text)).cloned();
        let said = printed.wait_for(|lines| find(lines).is_some());
        let said = tokio::time::timeout(START, said).await;
        let said = said.unwrap_or_else(|_| panic!("{} does not say {text}", self.name));
        find(&said.unwrap()).unwrap()
    }

    /// Waits for the end.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let running = self.running.as_mut().unwrap();
        let ended = async { while running.printed.changed().await.is_ok() {} };
        let ended = tokio::time::timeout(END, ended).await;
        assert!(ended.is_ok(), "{} did not end within {END:?}", self.name);
        let mut running = self.running.take().unwrap();
        self.earlier.extend_from_slice(&running.printed.borrow());
        running.process.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            // Both fail once it has ended, which is well.
            let _ = running.process.kill();
            let _ = running.process.wait();
            self.earlier.extend_from_slice(&running.printed.borrow());
        }
        if std::thread::panicking() {
            let last = self.earlier.len().saturating_sub(LINES);
            eprintln!("--- {}\n{}", self.name, self.earlier[last..].join("\n"));
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

/// A loopback address that nobody listens on, for a server that comes back to it. Its port is
/// below those that systems give out by themselves, so that nobody takes it in between.
pub(crate) fn reserve_addr() -> SocketAddr {
    static RESERVED: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut reserved = RESERVED.lock().unwrap();
    // Test processes beside this one begin elsewhere.
    let begin = 20_000 + u16::try_from(std::process::id() % 400).unwrap() * 25;
    (begin..32_000)
        .filter(|port| !reserved.contains(port))
        .map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
        .find(|addr| TcpListener::bind(addr).is_ok())
        .inspect(|addr| {
            reserved.insert(addr.port());
        })
        .expect("a port is free")
}
