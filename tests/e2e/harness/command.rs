//! The operator's commands: the real program against a platform in this process.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Output, Stdio},
    time::Duration,
};

use delivery::Credentials;
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    Platform,
    all_in_one::{operator_command, run_master_key, stderr},
};

impl Platform {
    /// The human-readable output of `delivery <arguments>`.
    pub(crate) async fn run_delivery(&self, arguments: &[&str]) -> String {
        let output = self.run_delivery_output(arguments).await;
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The output of `delivery <arguments>`, which may fail.
    pub(crate) async fn run_delivery_output(&self, arguments: &[&str]) -> Output {
        self.run_delivery_as(&self.operator_client, arguments).await
    }

    /// The output of `delivery <arguments> --json`.
    pub(crate) async fn run_delivery_json(&self, arguments: &[&str]) -> Value {
        let printed = self.run_delivery(&[arguments, &["--json"]].concat()).await;
        serde_json::from_str(&printed).unwrap()
    }

    /// The lines that `delivery <arguments>` prints while it runs. It ends when they are dropped.
    pub(crate) fn spawn_delivery(&self, arguments: &[&str]) -> PrintedLines {
        let mut command = operator_command(&self.core_url, &self.operator_client, arguments);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let printed = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            let lines = printed.lines().map_while(Result::ok);
            lines.map_while(|line| sender.send(line).ok()).count()
        });
        PrintedLines { lines, process }
    }

    /// The ids that `delivery master-key <arguments>` prints.
    pub(crate) fn run_master_key(&self, arguments: &[&str]) -> Vec<String> {
        run_master_key(self.directory.path(), arguments)
    }

    /// Runs `delivery <arguments>` with the credentials of any client.
    pub(crate) async fn run_delivery_as(
        &self,
        credentials: &Credentials,
        arguments: &[&str],
    ) -> Output {
        run_operator_command(&self.core_url, credentials, arguments).await
    }
}

/// What a running command prints.
pub(crate) struct PrintedLines {
    lines: mpsc::UnboundedReceiver<String>,
    process: Child,
}

impl Drop for PrintedLines {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl PrintedLines {
    pub(crate) async fn next(&mut self) -> String {
        let line = tokio::time::timeout(Duration::from_mins(1), self.lines.recv()).await;
        line.unwrap().expect("the command ended")
    }

    /// The next line for which a function returns something.
    pub(crate) async fn find<T>(&mut self, mut find: impl FnMut(&str) -> Option<T>) -> T {
        loop {
            if let Some(found) = find(&self.next().await) {
                return found;
            }
        }
    }
}

/// Runs `delivery <arguments>` against a core.
pub(crate) async fn run_operator_command(
    core_url: &str,
    credentials: &Credentials,
    arguments: &[&str],
) -> Output {
    let mut command = operator_command(core_url, credentials, arguments);
    // The platform needs this runtime.
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}
