//! The operator's commands, run as the real program against a platform in this process.

use std::process::Output;

use delivery::Credentials;
use serde_json::Value;

use super::{
    Platform, Twin,
    all_in_one::{command, stderr},
};

impl Platform {
    /// What `delivery <arguments>` prints for people.
    pub(crate) async fn delivery(&self, arguments: &[&str]) -> String {
        succeed(self.delivery_as(&self.operator_client, arguments).await)
    }

    /// The document that `delivery <arguments> --json` prints.
    pub(crate) async fn delivery_json(&self, arguments: &[&str]) -> Value {
        let printed = self.delivery(&[arguments, &["--json"]].concat()).await;
        serde_json::from_str(&printed).unwrap()
    }

    /// Runs `delivery <arguments>` with the credentials of any client.
    pub(crate) async fn delivery_as(
        &self,
        credentials: &Credentials,
        arguments: &[&str],
    ) -> Output {
        run(&self.core_url, credentials, arguments).await
    }
}

impl Twin {
    /// The document that `delivery <arguments> --json` prints.
    pub(crate) async fn delivery_json(&self, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["--json"]].concat();
        let printed = succeed(run(self.core_url(), self.operator_client(), &arguments).await);
        serde_json::from_str(&printed).unwrap()
    }
}

async fn run(core_url: &str, credentials: &Credentials, arguments: &[&str]) -> Output {
    let mut command = command();
    command
        .args(arguments)
        .args(["--core-url", core_url])
        .env("DELIVERY_OPERATOR_KEY", &credentials.api_key)
        .env("DELIVERY_OPERATOR_SECRET", &credentials.api_secret);
    // The platform goes on meanwhile.
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

fn succeed(output: Output) -> String {
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}
