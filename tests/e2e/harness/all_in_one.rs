//! The real `delivery` binary, run as by a user.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use delivery::Credentials;
use serde::Deserialize as _;
use serde_json::Value;
use tempfile::TempDir;

use super::short_draft;

/// Far longer than a start or an exit takes.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A running `delivery`. Killed if the test fails before it is stopped.
pub(crate) struct AllInOne {
    pub(crate) process: Child,
    /// Its output up to and including the line that begins `ready`.
    pub(crate) printed: Vec<String>,
    pub(crate) ready: Value,
    data_dir: PathBuf,
    /// Removed with it.
    directory: Option<TempDir>,
}

impl AllInOne {
    /// Starts `delivery` on free ports in a new data directory and waits until it is ready.
    pub(crate) fn start_new(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut running = Self::start(directory.path(), arguments);
        running.directory = Some(directory);
        running
    }

    /// Starts `delivery` on free ports and waits until it is ready.
    pub(crate) fn start(data_dir: &Path, arguments: &[&str]) -> Self {
        Self::spawn(command(), data_dir, arguments)
    }

    fn spawn(mut command: Command, data_dir: &Path, arguments: &[&str]) -> Self {
        command.args(arguments);
        for listen in ["--rest-listen", "--core-listen"] {
            if !arguments.iter().any(|given| given.starts_with(listen)) {
                command.arg(format!("{listen}=127.0.0.1:0"));
            }
        }
        let mut process = command
            .arg("--data-dir")
            .arg(data_dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        let (lines, printed) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if lines.send(line).is_err() {
                    break;
                }
            }
        });

        let mut running = Self {
            process,
            printed: Vec::new(),
            ready: Value::Null,
            data_dir: data_dir.to_owned(),
            directory: None,
        };
        let mut is_ready = false;
        while !is_ready {
            let line = printed
                .recv_timeout(TIMEOUT)
                .expect("a line should begin with `ready`");
            is_ready = line.starts_with("ready");
            running.printed.push(line);
        }
        let ready = fs::read(data_dir.join("ready.json")).unwrap();
        running.ready = serde_json::from_slice(&ready).unwrap();
        running
    }

    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Runs an operator's command.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        run_delivery(&self.data_dir, arguments)
    }

    /// The JSON output of an operator's command.
    pub(crate) fn run_json(&self, arguments: &[&str]) -> Value {
        run_delivery_json(&self.data_dir, arguments)
    }

    /// Sends a signal and waits for the exit.
    pub(crate) fn stop(mut self, signal: &str) -> ExitStatus {
        let kill = format!("kill {signal} {}", self.process.id());
        let sent = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(sent.success());
        let signalled = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(
                signalled.elapsed() < TIMEOUT,
                "it does not exit after {signal}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A member of `ready.json`, by its JSON pointer.
    pub(crate) fn text(&self, member: &str) -> &str {
        self.ready.pointer(member).unwrap().as_str().unwrap()
    }

    /// The URL of the gRPC API, from the line that begins `ready`.
    pub(crate) fn grpc_url(&self) -> String {
        let (_, url) = self.printed.last().unwrap().split_once("gRPC ").unwrap();
        url.split(',').next().unwrap().to_owned()
    }

    /// The demo shop's API client.
    pub(crate) fn demo_client(&self) -> Credentials {
        credentials(&self.ready["demo_client"])
    }

    pub(crate) fn operator_client(&self) -> Credentials {
        credentials(&self.ready["operator_client"])
    }

    /// Calls the REST API as the demo shop, by `curl` with these further arguments.
    pub(crate) fn call(&self, path: &str, more: &[&str]) -> Value {
        let base_url = self.text("/base_url");
        let client = self.demo_client();
        let mut token = command();
        token.args(["token", "--scopes=deliveries tasks", "--base-url"]);
        token.arg(base_url).env("DELIVERY_API_KEY", client.api_key);
        token.env("DELIVERY_API_SECRET", client.api_secret);
        let token = token.output().unwrap();
        assert!(token.status.success(), "{}", stderr(&token));
        let token = String::from_utf8(token.stdout).unwrap();
        let bearer = format!("Authorization: Bearer {}", token.trim_end());
        let url = format!("{base_url}{path}");
        let content_type = "Content-Type: application/ld+json";
        curl(&[&["-H", &bearer, "-H", content_type, &url], more].concat())
    }

    /// Creates a delivery as the demo shop.
    pub(crate) fn create_delivery(&self) -> Value {
        self.call("/api/deliveries", &["-d", &short_draft().to_string()])
    }
}

impl Drop for AllInOne {
    fn drop(&mut self) {
        // Both fail if the process has already exited.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The key and secret in the JSON of an API client.
pub(crate) fn credentials(client: &Value) -> Credentials {
    Credentials::deserialize(client).unwrap()
}

/// An operator's command against a core.
pub(crate) fn operator_command(
    core_url: &str,
    credentials: &Credentials,
    arguments: &[&str],
) -> Command {
    let mut command = command();
    command
        .args(arguments)
        .args(["--core-url", core_url])
        .env("DELIVERY_OPERATOR_KEY", &credentials.api_key)
        .env("DELIVERY_OPERATOR_SECRET", &credentials.api_secret);
    command
}

/// `delivery` without arguments.
pub(crate) fn command() -> Command {
    program(env!("CARGO_BIN_EXE_delivery"))
}

/// A program without the `DELIVERY_` variables of the tests' environment.
pub(crate) fn program(path: &str) -> Command {
    let mut command = Command::new(path);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("DELIVERY_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs `delivery` with a data directory, for example an operator's command against its all-in-one.
pub(crate) fn run_delivery(data_dir: &Path, arguments: &[&str]) -> Output {
    let mut command = command();
    command.args(arguments).arg("--data-dir").arg(data_dir);
    command.output().unwrap()
}

/// The JSON output of [`run_delivery`].
pub(crate) fn run_delivery_json(data_dir: &Path, arguments: &[&str]) -> Value {
    let output = run_delivery(data_dir, &[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The ids that `delivery master-key <arguments>` prints.
pub(crate) fn run_master_key(data_dir: &Path, arguments: &[&str]) -> Vec<String> {
    let output = run_delivery(data_dir, &[&["master-key"], arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    printed.lines().map(str::to_owned).collect()
}

fn curl(arguments: &[&str]) -> Value {
    let output = Command::new("curl")
        .arg("-sS")
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A program's output on stderr.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
