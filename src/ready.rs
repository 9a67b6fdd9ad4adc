//! `ready.json`: where a running all-in-one is reached, and by whom. Scripts wait for it; the
//! operator's commands read it.

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::Context;
use core_service::Credentials;
use serde::{Deserialize, Serialize};

/// The file's name in the data directory.
const FILE: &str = "ready.json";

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Ready {
    /// Of the REST API: `http://127.0.0.1:8080`.
    pub base_url: String,
    /// Of the gRPC API: `http://127.0.0.1:50051`.
    pub core_url: String,
    pub pid: u32,
    /// Id of the demo shop.
    pub store: String,
    /// The demo shop's API client: scopes `deliveries tasks`.
    pub demo_client: Credentials,
    /// The operator's client: scopes `tasks:all admin`.
    pub operator_client: Credentials,
}

impl Ready {
    /// What the data directory's last start left. Fails with a sentence if there is nothing.
    pub fn read(data_dir: &Path) -> anyhow::Result<Self> {
        let path = data_dir.join(FILE);
        let shown = path.display();
        let text = fs::read_to_string(&path).with_context(|| {
            format!(
                "cannot read {shown}: start `delivery`, name its directory with --data-dir, or name a core with --core-url"
            )
        })?;
        serde_json::from_str(&text).with_context(|| format!("{shown} is not what `delivery` wrote"))
    }

    /// Makes the file appear, whole, and readable by its owner alone.
    pub(crate) fn write(&self, data_dir: &Path) -> anyhow::Result<()> {
        let path = data_dir.join(FILE);
        let unfinished = data_dir.join("ready.json.new");
        remove(&unfinished)?;
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished)
            .and_then(|mut file| self.write_to(&mut file))
            .and_then(|()| fs::rename(&unfinished, &path))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn write_to(&self, file: &mut File) -> std::io::Result<()> {
        serde_json::to_writer_pretty(&mut *file, self)?;
        file.write_all(b"\n")?;
        file.sync_all()
    }
}

/// Takes away what an earlier start left: from now on nothing is ready.
pub(crate) fn clear(data_dir: &Path) -> anyhow::Result<()> {
    remove(&data_dir.join(FILE))
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

    fn ready(pid: u32) -> Ready {
        let credentials = |key: &str| Credentials {
            api_key: key.to_owned(),
            api_secret: "s".to_owned(),
        };
        Ready {
            base_url: "http://127.0.0.1:1".to_owned(),
            core_url: "http://127.0.0.1:2".to_owned(),
            pid,
            store: "01932e5c-9f4a-7000-8000-00000000000a".to_owned(),
            demo_client: credentials("demo"),
            operator_client: credentials("operator"),
        }
    }

    #[test]
    fn what_is_written_is_read_and_only_by_its_owner() {
        let directory = tempfile::tempdir().unwrap();

        ready(1).write(directory.path()).unwrap();
        ready(2).write(directory.path()).unwrap();

        assert_eq!(Ready::read(directory.path()).unwrap(), ready(2));
        let metadata = fs::metadata(directory.path().join(FILE)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn nothing_is_ready_once_cleared() {
        let directory = tempfile::tempdir().unwrap();
        ready(1).write(directory.path()).unwrap();

        clear(directory.path()).unwrap();
        clear(directory.path()).unwrap();

        let error = Ready::read(directory.path()).unwrap_err().to_string();
        assert!(error.contains("start `delivery`"), "{error}");
    }
}
