//! `ready.json`: the URLs and credentials of a running all-in-one. Scripts wait for the
//! file; the operator's commands read it.

use std::{
    fs,
    io::{ErrorKind, Write},
    path::Path,
};

use anyhow::Context;
use core_service::Credentials;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

const FILE_NAME: &str = "ready.json";

/// The contents of `ready.json`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct ReadyFile {
    /// URL of the REST API: `http://127.0.0.1:8080`.
    pub base_url: String,
    /// URL of the gRPC API for this machine: `http://127.0.0.1:50051`. Always without TLS: if the
    /// API is served over TLS, on another port.
    pub core_url: String,
    pub pid: u32,
    /// ID of the demo store; absent without the demo.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// The demo store's API client, with the scopes `deliveries tasks`. A client is absent once its
    /// secret was replaced or it was disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demo_client: Option<Credentials>,
    /// The operator's API client, with the scopes `tasks:all admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator_client: Option<Credentials>,
}

impl ReadyFile {
    /// Reads the file of a running all-in-one. Errors are messages for the operator.
    pub fn read(data_dir: &Path) -> anyhow::Result<Self> {
        let path = data_dir.join(FILE_NAME);
        let display = path.display();
        let text = fs::read_to_string(&path).with_context(|| {
            format!(
                "cannot read {display}: start `delivery`, or set its data directory with --data-dir"
            )
        })?;
        serde_json::from_str(&text).with_context(|| format!("{display} is not a valid ready.json"))
    }

    /// Writes the file atomically, readable only by its owner.
    pub(crate) fn write(&self, data_dir: &Path) -> anyhow::Result<()> {
        let path = data_dir.join(FILE_NAME);
        self.write_to(data_dir, &path)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn write_to(&self, data_dir: &Path, path: &Path) -> std::io::Result<()> {
        // Created with mode 0600.
        let mut file = NamedTempFile::new_in(data_dir)?;
        serde_json::to_writer_pretty(&mut file, self)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    }
}

/// Removes the file of an earlier start.
pub(crate) fn clear(data_dir: &Path) -> anyhow::Result<()> {
    let path = data_dir.join(FILE_NAME);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
