//! The files of a test, in a directory that is removed at its end.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use serde_json::Value;
use tempfile::TempDir;

use crate::program::PROGRAMS;

pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn directory(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file with these permissions, or replaces it atomically: a program reads the old or
    /// the new one. Returns its path.
    pub(crate) fn write(&self, name: &str, mode: u32, text: &str) -> String {
        let (draft, path) = (self.path("draft"), self.path(name));
        fs::write(&draft, text).unwrap();
        fs::set_permissions(&draft, fs::Permissions::from_mode(mode)).unwrap();
        fs::rename(draft, &path).unwrap();
        path
    }

    /// Sets up a platform over SQLite; returns the flags of its core, and its clients.
    pub(crate) fn bootstrap(&self) -> (Vec<String>, Value) {
        let flags = vec![
            format!("--database-url=sqlite://{}?mode=rwc", self.path("sqlite")),
            format!("--master-key-file={}", self.path("master.key")),
        ];
        let clients = PROGRAMS.bootstrap(&flags);
        (flags, clients)
    }
}
