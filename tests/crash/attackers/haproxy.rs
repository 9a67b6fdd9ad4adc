//! The `HAProxy` of `deploy/compose` in front of a gateway.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;

use crate::{eventually, prerequisites, reserved_addr::reserve_addr};

const CONFIG: &str = include_str!("../../../deploy/compose/haproxy.cfg");
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Killed when it is dropped.
pub(super) struct HaProxy {
    pub(super) addr: SocketAddr,
    process: Child,
    _directory: TempDir,
}

impl HaProxy {
    /// Starts it in front of a gateway; `None`, with a message on stderr, on a machine without it.
    pub(super) async fn start(gateway: &str) -> Option<Self> {
        if Command::new("haproxy").arg("-v").output().is_err() {
            prerequisites::skip("attacks behind HAProxy", "haproxy is not installed");
            return None;
        }
        let (addr, directory) = (reserve_addr(), tempfile::tempdir().unwrap());
        let mut config = CONFIG.to_owned();
        for (shipped, here) in [
            ("bind :8080", format!("bind {addr}")),
            (
                "server-template gateway 10 gateway:8080",
                format!("server gateway {gateway}"),
            ),
            (" resolvers containers init-addr none", String::new()),
        ] {
            assert!(config.contains(shipped), "{config}");
            config = config.replace(shipped, &here);
        }
        let file = directory.path().join("haproxy.cfg");
        fs::write(&file, config).unwrap();
        let process = Command::new("haproxy")
            .args(["-db", "-f"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let started = Self {
            addr,
            process,
            _directory: directory,
        };
        eventually(
            START_TIMEOUT,
            "HAProxy does not accept connections",
            async || TcpStream::connect(addr).ok(),
        )
        .await;
        Some(started)
    }
}

impl Drop for HaProxy {
    fn drop(&mut self) {
        // Both fail if the process has already exited.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
