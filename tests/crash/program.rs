//! The programs under test, built by cargo.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{LazyLock, mpsc},
    thread,
    time::Duration,
};

use delivery::Credentials;
use serde_json::Value;

/// Longer than any command takes.
const EXIT_TIMEOUT: Duration = Duration::from_mins(3);

/// The paths of the programs.
pub(crate) struct Programs {
    pub(crate) delivery: PathBuf,
    pub(crate) core: PathBuf,
    pub(crate) gateway: PathBuf,
    pub(crate) dispatcher: PathBuf,
}

impl Programs {
    /// Sets up a platform by the flags of its core; returns its clients.
    pub(crate) fn bootstrap(&self, flags: &[String]) -> Value {
        json(command(&self.core).arg("bootstrap").args(flags))
    }

    /// An operator's command against a core, without arguments.
    pub(crate) fn operator_command(&self, core_url: &str, operator: &Credentials) -> Command {
        let mut command = command(&self.delivery);
        command
            .env("DELIVERY_CORE_URL", core_url)
            .env("DELIVERY_OPERATOR_KEY", &operator.api_key)
            .env("DELIVERY_OPERATOR_SECRET", &operator.api_secret);
        command
    }
}

/// Cargo builds only the programs of the test's own package. The others are built here, once per
/// test process, by the same cargo, with the same profile, into the same directory. Naming this
/// test too makes cargo select the same features of shared packages, so nothing is built twice.
pub(crate) static PROGRAMS: LazyLock<Programs> = LazyLock::new(|| {
    let delivery = PathBuf::from(env!("CARGO_BIN_EXE_delivery"));
    let directory = delivery.parent().unwrap();
    let profile = match directory.file_name().unwrap().to_str().unwrap() {
        "debug" => "dev",
        other => other,
    };
    let output = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([
            "build",
            "--quiet",
            "--message-format=json-render-diagnostics",
        ])
        .args([
            "--bin=core-service",
            "--bin=rest-gateway",
            "--bin=webhook-dispatcher",
        ])
        .args(["--example=receiver", "--test=crash"])
        .args(["--profile", profile, "--target-dir"])
        .arg(directory.parent().unwrap())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "cannot build the programs: {}",
        String::from_utf8_lossy(&output.stderr)
    );

    let executables: Vec<Value> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    let find = |name: &str| {
        executables
            .iter()
            .filter(|message| message["target"]["name"] == name)
            .filter(|message| message["target"]["kind"][0] == "bin")
            .find_map(|message| message["executable"].as_str())
            .map_or_else(|| panic!("cargo built no {name}"), PathBuf::from)
    };
    Programs {
        core: find("core-service"),
        gateway: find("rest-gateway"),
        dispatcher: find("webhook-dispatcher"),
        delivery,
    }
});

/// A program without the `DELIVERY_` variables of the tests' environment, which logs text.
pub(crate) fn command(path: &Path) -> Command {
    let mut command = Command::new(path);
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("DELIVERY_") {
            command.env_remove(name);
        }
    }
    command.env("DELIVERY_LOG_FORMAT", "text");
    command
}

/// Runs a program until it exits. If it does not, kills it and fails with what its threads wait for.
#[track_caller]
pub(crate) fn output(command: &mut Command) -> Output {
    let process = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let id = process.id();
    let (exited, is_exited) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        let waited = is_exited.recv_timeout(EXIT_TIMEOUT);
        (waited == Err(mpsc::RecvTimeoutError::Timeout)).then(|| {
            let threads = threads(id);
            let kill = Command::new("sh")
                .args(["-c", &format!("kill -9 {id}")])
                .status();
            assert!(kill.unwrap().success());
            threads
        })
    });
    let output = process.wait_with_output().unwrap();
    drop(exited);
    if let Some(threads) = watchdog.join().unwrap() {
        let printed = String::from_utf8_lossy(&output.stderr);
        panic!("{command:?} did not exit within {EXIT_TIMEOUT:?}: {printed}\n{threads}");
    }
    output
}

/// The threads of a process: name, state, and the system call each waits in.
fn threads(id: u32) -> String {
    let tasks = fs::read_dir(format!("/proc/{id}/task"))
        .into_iter()
        .flatten();
    let describe = |task: PathBuf| {
        let read = |name| fs::read_to_string(task.join(name)).unwrap_or_default();
        let status = read("status");
        let state = status.lines().find(|line| line.starts_with("State:"));
        format!(
            "{} {} {}",
            read("comm").trim(),
            state.unwrap_or_default(),
            read("syscall").trim()
        )
    };
    let threads: Vec<_> = tasks.flatten().map(|task| describe(task.path())).collect();
    threads.join("\n")
}

/// Runs a program until it exits and returns the JSON document it prints.
#[track_caller]
pub(crate) fn json(command: &mut Command) -> Value {
    parse(&output(command))
}

/// The JSON document that a program printed.
pub(crate) fn parse(output: &Output) -> Value {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}
