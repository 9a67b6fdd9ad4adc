//! The all-in-one on SQLite, which comes back at the same addresses.

use std::{
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    caller::Caller,
    cluster::credentials,
    program::PROGRAMS,
    server::{Server, reserve_addr},
};

/// A `delivery` with a data directory of its own.
pub(crate) struct AllInOne {
    pub(crate) server: Server,
    pub(crate) directory: TempDir,
}

impl AllInOne {
    pub(crate) async fn start() -> Self {
        Self::start_under(&PROGRAMS.delivery, |_| Vec::new()).await
    }

    /// Starts it as the last argument of another program, whose own arguments may name files
    /// beside the data directory.
    pub(crate) async fn start_under(
        program: &Path,
        arguments: impl FnOnce(&Path) -> Vec<String>,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut arguments = arguments(directory.path());
        arguments.push(format!("--rest-listen={}", reserve_addr()));
        arguments.push(format!("--core-listen={}", reserve_addr()));
        let data_dir = directory.path().join("data");
        arguments.push(format!("--data-dir={}", data_dir.to_str().unwrap()));
        let mut server = Server::new("delivery", program, arguments, ("ready:", 1));
        server.start().await;
        Self { server, directory }
    }

    /// The demo shop's program.
    pub(crate) async fn shop(&self) -> Caller {
        self.caller("demo_client", "deliveries tasks").await
    }

    /// A program that completes tasks.
    pub(crate) async fn dispatch_board(&self) -> Caller {
        self.caller("operator_client", "tasks:all").await
    }

    /// Runs a statement on its database, from outside, and gives the first value of the answer.
    pub(crate) fn sql(&self, statement: &str) -> String {
        let script = "import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=10, isolation_level=None)
print((database.execute(sys.argv[2]).fetchone() or [''])[0])";
        let database = self.directory.path().join("data/delivery.sqlite");
        let Output { status, stdout, .. } = Command::new("python3")
            .args(["-c", script])
            .arg(&database)
            .arg(statement)
            .output()
            .unwrap();
        assert!(status.success(), "{statement}");
        String::from_utf8(stdout).unwrap().trim_end().to_owned()
    }

    async fn caller(&self, client: &str, scopes: &str) -> Caller {
        let ready = self.ready();
        let base_url = ready["base_url"].as_str().unwrap().to_owned();
        Caller::authorized(&[base_url], &credentials(&ready[client]), scopes).await
    }

    fn ready(&self) -> Value {
        let ready = self.directory.path().join("data/ready.json");
        serde_json::from_slice(&std::fs::read(ready).unwrap()).unwrap()
    }
}
