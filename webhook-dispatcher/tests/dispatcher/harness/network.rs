//! A network of a test's own: loopback, a public and a private address on it, and a resolver that
//! asks nobody else.

use std::{future::Future, io::Write, net::Ipv4Addr, process::Command};

/// An address of the public internet. Nothing leaves the network, so it is nobody else's there.
pub(crate) const PUBLIC: Ipv4Addr = Ipv4Addr::new(93, 184, 216, 34);
pub(crate) const PRIVATE: Ipv4Addr = Ipv4Addr::new(10, 1, 2, 3);

/// Set inside.
const INSIDE: &str = "DELIVERY_TEST_IN_OWN_NETWORK";

/// What the network's script says when the network is there.
const READY: &str = "the network is ready";

/// Makes the network, in namespaces that end with the program it becomes.
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
# Its answers are another network's.
[ ! -d /var/run/nscd ] || mount -t tmpfs none /var/run/nscd
echo "$ready"
exec "$@"
"#;

/// Asked once: a slow machine is no reason to ask again.
const RESOLV_CONF: &str = "nameserver 127.0.0.1\noptions timeout:30 attempts:1\n";
const NSSWITCH_CONF: &str = "hosts: dns\n";

/// Runs a test in a network of its own: this program once more, with this test alone. Where a
/// network cannot be made, which takes `ip` and `unshare` and a system that lets us, that is said
/// on stderr; with `CI=true` it is a failure.
pub(crate) async fn in_own_network(test: impl Future<Output = ()>) {
    if std::env::var_os(INSIDE).is_some() {
        return test.await;
    }
    let files = tempfile::tempdir().unwrap();
    std::fs::write(files.path().join("resolv.conf"), RESOLV_CONF).unwrap();
    std::fs::write(files.path().join("nsswitch.conf"), NSSWITCH_CONF).unwrap();
    let this_thread = std::thread::current();
    let name = this_thread
        .name()
        .expect("threads of tests bear their names");
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
    let said = String::from_utf8_lossy(&inside.stdout);
    let complaints = String::from_utf8_lossy(&inside.stderr);
    if !said.contains(READY) {
        let required = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(
            !required,
            "no network of its own, and CI=true: {complaints}"
        );
        // Past the test runner's capture: whoever reads the result must know what it covers.
        let _ = writeln!(
            std::io::stderr(),
            "*** {name}: no network of its own can be made here: SKIPPED *** {complaints}"
        );
        return;
    }
    let passed = inside.status.success() && said.contains("1 passed");
    assert!(passed, "{said}{complaints}");
}
