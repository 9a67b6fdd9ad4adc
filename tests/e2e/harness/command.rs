//! The operator's commands: the real program against a platform in this process.

use std::process::Output;

use delivery::Credentials;
use serde_json::Value;

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
