//! The REST API over TLS, with a certificate that is renewed while it is served.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use rcgen::{CertifiedKey, generate_simple_self_signed};

use crate::harness::all_in_one::{AllInOne, run_delivery, stderr};

/// A self-signed certificate for 127.0.0.1 and its key, in files.
pub(super) struct Identity {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

impl Identity {
    pub(super) fn create(directory: &Path, name: &str) -> Self {
        let identity = generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let CertifiedKey { cert, signing_key } = identity;
        let write = |extension: &str, text: &str| {
            let path = directory.join(format!("{name}.{extension}"));
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            path
        };
        Self {
            certificate: write("pem", &cert.pem()),
            key: write("key", &signing_key.serialize_pem()),
        }
    }

    /// The HTTP version and the status that a client gets if it trusts only this certificate; empty
    /// without a connection.
    fn status(&self, url: &str, http: &str) -> String {
        let output = Command::new("curl")
            .args([
                "-s",
                "-o",
                "/dev/null",
                "-w",
                "%{http_version} %{http_code}",
                http,
                "--cacert",
            ])
            .arg(&self.certificate)
            .arg(url)
            .output()
            .unwrap();
        if output.status.success() {
            String::from_utf8(output.stdout).unwrap()
        } else {
            String::new()
        }
    }
}

#[test]
fn rest_is_served_over_tls_with_the_current_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let first = Identity::create(directory.path(), "first");
    let second = Identity::create(directory.path(), "second");
    let current = Identity::create(directory.path(), "current");
    let install = |identity: &Identity| {
        fs::rename(&identity.key, &current.key).unwrap();
        fs::copy(&identity.certificate, &current.certificate).unwrap();
    };
    install(&first);
    let flags = [
        format!("--tls-certificate={}", current.certificate.display()),
        format!("--tls-key={}", current.key.display()),
    ];

    let running = AllInOne::start(&directory.path().join("data"), &[&flags[0], &flags[1]]);

    let base_url = running.text("/base_url");
    assert!(base_url.starts_with("https://127.0.0.1:"), "{base_url}");
    let url = format!("{base_url}/readyz");
    assert_eq!(first.status(&url, "--http1.1"), "1.1 200");
    assert_eq!(first.status(&url, "--http2"), "2 200");
    assert_eq!(second.status(&url, "--http2"), "");
    let plain = url.replace("https://", "http://");
    assert_eq!(first.status(&plain, "--http1.1"), "");

    install(&second);
    assert_eq!(second.status(&url, "--http2"), "2 200");
    assert_eq!(first.status(&url, "--http2"), "");
    assert!(running.stop("-TERM").success());
}

#[test]
fn a_key_that_others_can_read_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let Identity { certificate, key } = Identity::create(directory.path(), "rest");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let [certificate, key] = [&certificate, &key].map(|path| path.to_str().unwrap());

    let rejected = run_delivery(
        &directory.path().join("data"),
        &[
            "start",
            "--rest-listen=127.0.0.1:0",
            "--core-listen=127.0.0.1:0",
            "--tls-certificate",
            certificate,
            "--tls-key",
            key,
        ],
    );

    assert_eq!(
        stderr(&rejected),
        format!(
            "cannot serve REST over TLS: {key} contains a secret and is accessible to other users \
             (mode 0644): run chmod 600 {key}\n"
        )
    );
}
