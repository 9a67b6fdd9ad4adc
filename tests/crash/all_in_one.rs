//! The all-in-one on SQLite, restarted on the same addresses.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use delivery::Credentials;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    caller::Caller,
    cluster::credentials,
    disk::Disk,
    program::{self, PROGRAMS},
    reserved_addr::reserve_addr,
    server::Server,
};

/// A `delivery` with its own data directory.
pub(crate) struct AllInOne {
    pub(crate) server: Server,
    pub(crate) directory: TempDir,
    /// The data directory, as seen by the server.
    pub(crate) data_dir: PathBuf,
    /// The command prefix that runs a program where the data directory is mounted; may be empty.
    runner: Vec<String>,
}

impl AllInOne {
    pub(crate) async fn start() -> Self {
        Self::start_with_flags(Vec::new()).await
    }

    /// Starts it with more flags.
    pub(crate) async fn start_with_flags(flags: Vec<String>) -> Self {
        Self::start_under(&PROGRAMS.delivery, |_| flags).await
    }

    /// Starts another build of it.
    pub(crate) async fn start_build(delivery: &Path) -> Self {
        Self::start_under(delivery, |_| Vec::new()).await
    }

    /// Starts it with the data directory `data` of a directory.
    pub(crate) async fn start_with_data(directory: TempDir) -> Self {
        let data_dir = directory.path().join("data");
        let program = &PROGRAMS.delivery;
        Self::start_in(data_dir, program, Vec::new(), Vec::new(), directory).await
    }

    /// Starts it by a program that executes its last arguments, such as `strace`. `arguments` gets
    /// the parent of the data directory.
    pub(crate) async fn start_under(
        program: &Path,
        arguments: impl FnOnce(&Path) -> Vec<String>,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let arguments = arguments(directory.path());
        let data_dir = directory.path().join("data");
        Self::start_in(data_dir, program, arguments, Vec::new(), directory).await
    }

    /// Starts it with its data on a disk that can be filled and frozen; `None`, with a message on
    /// stderr, where a disk cannot be mounted.
    pub(crate) async fn start_on_a_small_disk() -> Option<(Self, Disk)> {
        let directory = tempfile::tempdir().unwrap();
        let disk = Disk::mount(directory.path())?;
        let runner = disk.runner();
        let mut arguments = runner[1..].to_vec();
        arguments.push(PROGRAMS.delivery.to_str().unwrap().to_owned());
        let data_dir = disk.directory().join("data");
        let program = runner[0].clone();
        let program = Path::new(&program);
        let platform = Self::start_in(data_dir, program, arguments, runner, directory).await;
        Some((platform, disk))
    }

    async fn start_in(
        data_dir: PathBuf,
        program: &Path,
        mut arguments: Vec<String>,
        runner: Vec<String>,
        directory: TempDir,
    ) -> Self {
        arguments.push(format!("--rest-listen={}", reserve_addr()));
        arguments.push(format!("--core-listen={}", reserve_addr()));
        arguments.push(format!("--data-dir={}", data_dir.to_str().unwrap()));
        let mut server = Server::new("delivery", program, arguments, ("ready:", 1));
        server.start().await;
        Self {
            server,
            directory,
            data_dir,
            runner,
        }
    }

    /// The demo shop's client.
    pub(crate) async fn shop(&self) -> Caller {
        self.caller("demo_client", "deliveries tasks").await
    }

    /// A client that completes tasks.
    pub(crate) async fn dispatch_board(&self) -> Caller {
        self.caller("operator_client", "tasks:all").await
    }

    /// Runs a statement on its database, from another process; returns the first value of the result.
    pub(crate) fn sql(&self, statement: &str) -> String {
        let script = "import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=10, isolation_level=None)
print((database.execute(sys.argv[2]).fetchone() or [''])[0])";
        let database = self.data_dir.join("delivery.sqlite");
        let database = database.to_str().unwrap();
        let printed = self.run(&["python3", "-c", script, database, statement]);
        printed.trim_end().to_owned()
    }

    /// A program to be run where the data directory is mounted.
    pub(crate) fn command(&self, command: &[&str]) -> Command {
        let command = self
            .runner
            .iter()
            .map(String::as_str)
            .chain(command.iter().copied());
        let command: Vec<_> = command.collect();
        let mut first = program::command(Path::new(command[0]));
        first.args(&command[1..]);
        first
    }

    /// The output of a program run where the data directory is mounted.
    fn run(&self, command: &[&str]) -> String {
        let output = program::output(&mut self.command(command));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs an operator's command.
    pub(crate) fn operator(&self, arguments: &[&str]) -> Output {
        let program = PROGRAMS.delivery.to_str().unwrap();
        let data_dir = format!("--data-dir={}", self.data_dir.to_str().unwrap());
        program::output(&mut self.command(&[&[program], arguments, &[&data_dir]].concat()))
    }

    /// A caller with the credentials of any API client.
    pub(crate) async fn caller_for(&self, credentials: &Credentials, scopes: &str) -> Caller {
        let base_url = self.ready()["base_url"].as_str().unwrap().to_owned();
        Caller::authorized(&[base_url], credentials, scopes).await
    }

    async fn caller(&self, client: &str, scopes: &str) -> Caller {
        self.caller_for(&credentials(&self.ready()[client]), scopes)
            .await
    }

    pub(crate) fn ready(&self) -> Value {
        let ready = self.data_dir.join("ready.json");
        serde_json::from_str(&self.run(&["cat", ready.to_str().unwrap()])).unwrap()
    }
}
