//! The operator's commands: the real program against a platform in this process.

use std::process::Output;

use delivery::Credentials;
use serde_json::Value;

use super::{
    Platform, Replica,
    all_in_one::{command, run_master_key, stderr},
};

impl Platform {
    /// The human-readable output of `delivery <arguments>`.
    pub(crate) async fn run_delivery(&self, arguments: &[&str]) -> String {
        successful_output(self.run_delivery_as(&self.operator_client, arguments).await)
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

impl Replica {
    /// The output of `delivery <arguments> --json`.
    pub(crate) async fn run_delivery_json(&self, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["--json"]].concat();
        let printed = successful_output(self.run_delivery(&arguments).await);
        serde_json::from_str(&printed).unwrap()
    }

    /// Runs `delivery <arguments>`.
    pub(crate) async fn run_delivery(&self, arguments: &[&str]) -> Output {
        run_operator_command(self.core_url(), self.operator_client(), arguments).await
    }
}

/// Runs `delivery <arguments>` against a core.
pub(crate) async fn run_operator_command(
    core_url: &str,
    credentials: &Credentials,
    arguments: &[&str],
) -> Output {
    let mut command = command();
    command
        .args(arguments)
        .args(["--core-url", core_url])
        .env("DELIVERY_OPERATOR_KEY", &credentials.api_key)
        .env("DELIVERY_OPERATOR_SECRET", &credentials.api_secret);
    // The platform needs this runtime meanwhile.
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

fn successful_output(output: Output) -> String {
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}
