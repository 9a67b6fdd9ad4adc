//! An isolated network for a test: loopback with a public and a private address, and a resolver
//! that queries only the test's name server.

use std::{net::Ipv4Addr, process::Command};

use super::prerequisites;

/// An address of the public internet. No packet leaves the isolated network.
pub(crate) const PUBLIC: Ipv4Addr = Ipv4Addr::new(93, 184, 216, 34);
pub(crate) const PRIVATE: Ipv4Addr = Ipv4Addr::new(10, 1, 2, 3);

/// Set in the child process inside the isolated network.
const INSIDE: &str = "DELIVERY_TEST_IN_ISOLATED_NETWORK";

/// Printed by the script when the network is set up.
const READY: &str = "the network is ready";

/// Sets up the network in new namespaces, which last as long as the program it executes.
const SCRIPT: &str = r#"
set -eu
PATH=$PATH:/usr/sbin:/sbin
ready=$1 public=$2 private=$3 files=$4
shift 4
ip link set lo up
ip address add "$public/32" dev lo
ip address add "$private/32" dev lo
mount --bind "$files/resolv.conf" /etc/resolv.conf
[ ! -e /etc/nsswitch.conf ] || mount --bind "$files/nsswitch.conf" /etc/nsswitch.conf
# Hides the host's name service cache, which would answer instead of the test's name server.
[ ! -d /var/run/nscd ] || mount -t tmpfs none /var/run/nscd
echo "$ready"
exec "$@"
"#;

/// One attempt: on a slow machine, a repeated query would change the counts that tests assert.
const RESOLV_CONF: &str = "nameserver 127.0.0.1\noptions timeout:30 attempts:1\n";
const NSSWITCH_CONF: &str = "hosts: dns\n";

/// Runs a test in an isolated network: executes this program again with only this test. Without
/// `ip`, `unshare` or the permission to use them, the test is skipped with a message on stderr,
/// or fails where none may be skipped.
pub(crate) async fn in_isolated_network(test: impl Future<Output = ()>) {
    if std::env::var_os(INSIDE).is_some() {
        return test.await;
    }
    let files = tempfile::tempdir().unwrap();
    std::fs::write(files.path().join("resolv.conf"), RESOLV_CONF).unwrap();
    std::fs::write(files.path().join("nsswitch.conf"), NSSWITCH_CONF).unwrap();
    let this_thread = std::thread::current();
    let name = this_thread
        .name()
        .expect("the thread of a test has its name");
    let inside = Command::new("env")
        .args(["timeout", "--foreground", "300"])
        .args(["unshare", "--user", "--map-root-user", "--net", "--mount"])
        .args(["sh", "-c", SCRIPT, "network", READY])
        .args([PUBLIC, PRIVATE].map(|addr| addr.to_string()))
        .arg(files.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&inside.stdout);
    let stderr = String::from_utf8_lossy(&inside.stderr);
    if !stdout.contains(READY) {
        let reason = format!(
            "an isolated network cannot be set up ({})",
            stderr.trim_end()
        );
        return prerequisites::skip(name, &reason);
    }
    let passed = inside.status.success() && stdout.contains("1 passed");
    assert!(passed, "{stdout}{stderr}");
}
