//! The all-in-one with PostgreSQL.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    caller::Caller,
    cluster::credentials,
    program::PROGRAMS,
    server::{Server, reserve_addr},
};

pub(super) struct OneProcess {
    ready: Value,
    _server: Server,
    _directory: TempDir,
}

impl OneProcess {
    pub(super) async fn start(database_url: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = directory.path().to_str().unwrap();
        let arguments = vec![
            format!("--rest-listen={}", reserve_addr()),
            format!("--core-listen={}", reserve_addr()),
            format!("--data-dir={data_dir}"),
            format!("--database-url={database_url}"),
        ];
        let mut server = Server::new("delivery", &PROGRAMS.delivery, arguments, ("ready:", 1));
        server.start().await;
        let ready = std::fs::read(Path::new(data_dir).join("ready.json")).unwrap();
        Self {
            ready: serde_json::from_slice(&ready).unwrap(),
            _server: server,
            _directory: directory,
        }
    }

    /// The API client of the demo shop.
    pub(super) async fn shop(&self) -> Caller {
        self.caller("demo_client", "deliveries tasks").await
    }

    /// An API client that completes tasks.
    pub(super) async fn dispatch_board(&self) -> Caller {
        self.caller("operator_client", "tasks:all").await
    }

    async fn caller(&self, client: &str, scopes: &str) -> Caller {
        let base_url = self.ready["base_url"].as_str().unwrap().to_owned();
        Caller::authorized(&[base_url], &credentials(&self.ready[client]), scopes).await
    }
}
