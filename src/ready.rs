//! `ready.json`: the URLs and credentials of a running all-in-one. Scripts wait for the
//! file; the operator's commands read it.

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::Context;
use core_service::Credentials;
use serde::{Deserialize, Serialize};

const FILE_NAME: &str = "ready.json";

/// The contents of `ready.json`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct ReadyFile {
    /// URL of the REST API: `http://127.0.0.1:8080`.
    pub base_url: String,
    /// URL of the gRPC API: `http://127.0.0.1:50051`.
    pub core_url: String,
    pub pid: u32,
    /// ID of the demo store.
    pub store: String,
    /// The demo store's API client, with the scopes `deliveries tasks`.
    pub demo_client: Credentials,
    /// The operator's API client, with the scopes `tasks:all admin`.
    pub operator_client: Credentials,
}

impl ReadyFile {
    /// Reads the file of a running all-in-one. Errors are messages for the operator.
    pub fn read(data_dir: &Path) -> anyhow::Result<Self> {
        let path = data_dir.join(FILE_NAME);
        let display = path.display();
        let text = fs::read_to_string(&path).with_context(|| {
            format!(
                "cannot read {display}: start `delivery`, or set its data directory with --data-dir, or the URL of a core with --core-url"
            )
        })?;
        serde_json::from_str(&text).with_context(|| format!("{display} is not a valid ready.json"))
    }

    /// Writes the file atomically, readable only by its owner.
    pub(crate) fn write(&self, data_dir: &Path) -> anyhow::Result<()> {
        let path = data_dir.join(FILE_NAME);
        let temporary = data_dir.join("ready.json.new");
        remove(&temporary)?;
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| self.write_to(&mut file))
            .and_then(|()| fs::rename(&temporary, &path))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn write_to(&self, file: &mut File) -> std::io::Result<()> {
        serde_json::to_writer_pretty(&mut *file, self)?;
        file.write_all(b"\n")?;
        file.sync_all()
    }
}

/// Removes the file of an earlier start.
pub(crate) fn clear(data_dir: &Path) -> anyhow::Result<()> {
    remove(&data_dir.join(FILE_NAME))
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn ready(pid: u32) -> ReadyFile {
        let credentials = |key: &str| Credentials {
            api_key: key.to_owned(),
            api_secret: "s".to_owned(),
        };
        ReadyFile {
            base_url: "http://127.0.0.1:1".to_owned(),
            core_url: "http://127.0.0.1:2".to_owned(),
            pid,
            store: "01932e5c-9f4a-7000-8000-00000000000a".to_owned(),
            demo_client: credentials("demo"),
            operator_client: credentials("operator"),
        }
    }

    #[test]
    fn the_written_file_can_be_read_and_only_by_its_owner() {
        let directory = tempfile::tempdir().unwrap();

        ready(1).write(directory.path()).unwrap();
        ready(2).write(directory.path()).unwrap();

        assert_eq!(ReadyFile::read(directory.path()).unwrap(), ready(2));
        let metadata = fs::metadata(directory.path().join(FILE_NAME)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_cleared_file_cannot_be_read() {
        let directory = tempfile::tempdir().unwrap();
        ready(1).write(directory.path()).unwrap();

        clear(directory.path()).unwrap();
        clear(directory.path()).unwrap();

        let error = ReadyFile::read(directory.path()).unwrap_err().to_string();
        assert!(error.contains("start `delivery`"), "{error}");
    }
}
