//! Start-up errors: each program says what is wrong and what to do. After a usage error it also
//! mentions `--help` and exits with status 2; any other error is one line, and the status is 1.

use std::{fs, net::TcpListener, path::Path, process::Command};

use rcgen::{CertifiedKey, generate_simple_self_signed};

use crate::{
    files::Files,
    program::{self, PROGRAMS},
    reserved_addr::reserve_addr,
};

/// A directory with a platform bootstrapped over SQLite.
pub(crate) struct Fixture {
    files: Files,
    /// Listens on an address that is therefore in use.
    occupied: TcpListener,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let files = Files::new();
        files.bootstrap();
        Self {
            files,
            occupied: TcpListener::bind("127.0.0.1:0").unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.files.path(name)
    }

    pub(crate) fn file(&self, name: &str, mode: u32, text: &str) -> String {
        self.files.write(name, mode, text)
    }

    fn sqlite(&self) -> String {
        format!("--database-url=sqlite://{}?mode=rwc", self.path("sqlite"))
    }

    fn occupied_addr(&self) -> String {
        self.occupied.local_addr().unwrap().to_string()
    }

    /// A core with all required flags but the database.
    pub(crate) fn core(&self) -> Command {
        let mut command = program::command(&PROGRAMS.core);
        command
            .env("DELIVERY_CORE_LISTEN", "127.0.0.1:0")
            .env("DELIVERY_MASTER_KEY_FILE", self.path("master.key"));
        command
    }

    fn dispatcher() -> Command {
        let mut command = program::command(&PROGRAMS.dispatcher);
        command
            .env("DELIVERY_CORE_URL", "http://127.0.0.1:1")
            .env("DELIVERY_CLIENT_KEY", "key");
        command
    }
}

/// `delivery migrate`.
pub(crate) fn migrate() -> Command {
    let mut command = program::command(&PROGRAMS.delivery);
    command.arg("migrate");
    command
}

/// Asserts that the program prints exactly this line and exits with this status.
#[track_caller]
pub(crate) fn assert_error(command: &mut Command, status: i32, message: &str) {
    let output = program::output(command);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(printed, format!("{message}\n"), "{command:?}");
    assert_eq!(output.status.code(), Some(status), "{command:?}");
}

/// Asserts that the program exits with a usage error that has this prefix and mentions `--help`.
#[track_caller]
fn assert_usage_error(command: &mut Command, prefix: &str) {
    let output = program::output(command);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(printed.starts_with(prefix), "{command:?}: {printed}");
    assert!(printed.contains("--help"), "{command:?}: {printed}");
    assert_eq!(output.status.code(), Some(2), "{command:?}");
}

#[test]
fn a_core_reports_an_unusable_master_key() {
    let fixture = Fixture::new();
    let start = |key: &str| {
        let mut command = fixture.core();
        command
            .arg(fixture.sqlite())
            .arg("--master-key-file")
            .arg(key);
        command
    };
    let master_key = fs::read_to_string(fixture.path("master.key")).unwrap();

    let missing = fixture.path("nowhere");
    assert_error(
        &mut start(&missing),
        1,
        &format!(
            "core-service: this database has a master key, but {missing} does not exist: restore it from your backup, or name the right file with --master-key-file"
        ),
    );
    let exposed = fixture.file("exposed.key", 0o644, &master_key);
    assert_error(
        &mut start(&exposed),
        1,
        &format!(
            "core-service: cannot use the master key: {exposed} contains a secret and is accessible to other users (mode 0644): run chmod 600 {exposed}"
        ),
    );
    for text in [
        "",
        "c2hvcnQ=\n",
        "not Base64 at all, but forty-four characters",
    ] {
        let invalid = fixture.file("short.key", 0o600, text);
        assert_error(
            &mut start(&invalid),
            1,
            &format!(
                "core-service: the master key {invalid} is not 32 bytes of Base64 on each line; restore it from your backup, because secrets encrypted with it cannot be decrypted without it"
            ),
        );
    }
    let another = Fixture::new();
    let another = another.path("master.key");
    let other = fixture.file("other.key", 0o600, &fs::read_to_string(another).unwrap());
    assert_error(
        &mut start(&other),
        1,
        &format!(
            "core-service: this database belongs to another master key than {other}: name the right file with --master-key-file, or the database that belongs to this key"
        ),
    );
}

/// Only `bootstrap` creates the database and its schema.
#[test]
fn a_core_reports_a_database_that_was_not_bootstrapped() {
    let fixture = Fixture::new();
    let new = fixture.path("new.sqlite");
    assert_error(
        fixture
            .core()
            .arg(format!("--database-url=sqlite://{new}?mode=rwc")),
        1,
        "core-service: cannot open the database: this database has not been bootstrapped: run `core-service bootstrap` with the same database and master key first",
    );
    assert!(!Path::new(&new).exists());
}

#[test]
fn a_core_reports_invalid_addresses_and_settings() {
    let fixture = Fixture::new();
    let occupied = fixture.occupied_addr();
    for flag in ["--listen", "--health-listen"] {
        assert_error(
            fixture.core().arg(fixture.sqlite()).args([flag, &occupied]),
            1,
            &format!(
                "core-service: cannot listen on {occupied}; choose another address with {flag}, or port 0 for any free one: Address already in use (os error 98)"
            ),
        );
    }
    let unverified = "the database's host db.example would not be verified, and the connection could be read: set sslmode=verify-full (and sslrootcert, for an authority of your own) in the database URL, or set --allow-unverified-database";
    let url = "--database-url=postgres://delivery@db.example/delivery";
    for (mut command, name) in [(fixture.core(), "core-service: "), (migrate(), "")] {
        assert_error(command.arg(url), 1, &format!("{name}{unverified}"));
    }
    assert_error(
        fixture.core().args(["bootstrap", url]),
        1,
        &format!("core-service: {unverified}"),
    );
    let any_interface = format!("0.0.0.0:{}", reserve_addr().port());
    assert_error(
        fixture
            .core()
            .arg(fixture.sqlite())
            .args(["--listen", &any_interface]),
        1,
        &format!(
            "core-service: gRPC on {any_interface} would send tokens and secrets unencrypted: serve it over TLS (core-service has --tls-certificate and --tls-key, delivery has --grpc-tls-certificate and --grpc-tls-key), listen on a loopback address, or set --allow-plaintext"
        ),
    );
    assert_usage_error(
        fixture
            .core()
            .arg(fixture.sqlite())
            .env("DELIVERY_CORE_LISTEN", "here"),
        "error: invalid value 'here' for '--listen <LISTEN>': invalid socket address syntax\n",
    );
    assert_usage_error(
        fixture
            .core()
            .args([&fixture.sqlite(), "--delivery-retention=6d"]),
        "error: invalid value '6d' for '--delivery-retention <DURATION>': shorter than the minimum of 7d\n",
    );
    for (mut command, name) in [(fixture.core(), "core-service: "), (migrate(), "")] {
        let missing = "no database URL is configured: set DELIVERY_DATABASE_URL, --database-url or --database-url-file";
        assert_error(&mut command, 1, &format!("{name}{missing}"));
    }
    for program in [&PROGRAMS.core, &PROGRAMS.delivery] {
        assert_usage_error(
            program::command(program)
                .arg("--database-url=postgres://delivery:secret@host/delivery"),
            "error: a password in --database-url is visible in the process list: leave it out and set PGPASSWORD or PGPASSFILE, or put the whole URL into a file for --database-url-file\n",
        );
        for (flag, variable) in [
            (
                "--geocoder=photon=https://geo.example/?key=secret",
                "DELIVERY_GEOCODER",
            ),
            (
                "--osrm-url=https://:secret@routes.example/",
                "DELIVERY_OSRM_URL",
            ),
        ] {
            let name = flag.split('=').next().unwrap();
            assert_usage_error(
                program::command(program).args(["--database-url=sqlite://x", flag]),
                &format!("error: a key in {name} is visible in the process list: set {variable}\n"),
            );
        }
    }
}

#[test]
fn a_core_reports_unusable_tls_files() {
    let fixture = Fixture::new();
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = fixture.file("certificate.pem", 0o644, &cert.pem());
    let key = fixture.file("key.pem", 0o600, &signing_key.serialize_pem());
    let other = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let other = fixture.file("other.pem", 0o600, &other.signing_key.serialize_pem());
    let exposed = fixture.file("exposed.pem", 0o644, &signing_key.serialize_pem());
    let nowhere = fixture.path("nowhere.pem");
    let start = |arguments: &[(&str, &str)]| {
        let mut command = fixture.core();
        command.arg(fixture.sqlite());
        for (flag, file) in arguments {
            command.args([flag, file]);
        }
        command
    };
    let tls = |certificate, key| start(&[("--tls-certificate", certificate), ("--tls-key", key)]);

    for (mut command, reason) in [
        (
            tls(&nowhere, &key),
            format!("cannot read {nowhere}: No such file or directory (os error 2)"),
        ),
        (
            tls(&certificate, &nowhere),
            format!("cannot read {nowhere}: No such file or directory (os error 2)"),
        ),
        (
            tls(&key, &key),
            format!(
                "{key} is not a PEM file: a certificate between BEGIN and END lines is required"
            ),
        ),
        (
            tls(&certificate, &other),
            format!(
                "key {other} does not match certificate {certificate}: use a key and certificate of the same pair"
            ),
        ),
        (
            tls(&certificate, &exposed),
            format!(
                "{exposed} contains a secret and is accessible to other users (mode 0644): run chmod 600 {exposed}"
            ),
        ),
    ] {
        let message = format!("core-service: cannot serve gRPC over TLS: {reason}");
        assert_error(&mut command, 1, &message);
    }
    assert_usage_error(
        &mut start(&[("--tls-certificate", &certificate)]),
        "error: the following required arguments were not provided:\n  --tls-key <FILE>\n",
    );
}

#[test]
fn gateways_and_dispatchers_report_invalid_settings() {
    let fixture = Fixture::new();
    let occupied = fixture.occupied_addr();
    let gateway = || program::command(&PROGRAMS.gateway);
    assert_error(
        gateway().args(["--listen", &occupied]),
        1,
        &format!(
            "rest-gateway: cannot listen on {occupied}; choose another address with --listen, or port 0 for any free one: Address already in use (os error 98)"
        ),
    );
    assert_usage_error(
        gateway().env("DELIVERY_REST_MAX_BODY", "much"),
        "error: invalid value 'much' for '--max-body <BYTES>': not a whole number of 1 or more, such as 1048576\n\n  tip: the value is that of the environment variable DELIVERY_REST_MAX_BODY\n",
    );

    assert_usage_error(
        gateway().arg("--core-url=ftp://core"),
        "error: invalid value 'ftp://core' for '--core-url <CORE_URL>': `ftp://core` is not a core url: write it as http://HOST:PORT, or https://HOST:PORT for TLS\n",
    );
    assert_error(
        gateway().args(["--listen=127.0.0.1:0", "--core-url=http://core.example:1"]),
        1,
        "rest-gateway: tokens and secrets would be sent unencrypted to http://core.example:1: use https, or set --allow-plaintext-core",
    );

    let secret = fixture.file("secret", 0o600, "secret\n");
    let exposed = fixture.file("exposed", 0o644, "secret\n");
    let nowhere = fixture.path("nowhere");
    let dispatcher = |secret: &str| {
        let mut command = Fixture::dispatcher();
        command.env("DELIVERY_CLIENT_SECRET_FILE", secret);
        command
    };
    assert_error(
        &mut Fixture::dispatcher(),
        1,
        "webhook-dispatcher: no client secret: set --client-secret-file or DELIVERY_CLIENT_SECRET",
    );
    assert_error(
        dispatcher(&secret).env_remove("DELIVERY_CORE_URL"),
        1,
        "webhook-dispatcher: no core url given: set --core-url",
    );
    assert_error(
        &mut dispatcher(&nowhere),
        1,
        &format!(
            "webhook-dispatcher: cannot read the client secret: cannot read {nowhere}: No such file or directory (os error 2)"
        ),
    );
    assert_error(
        &mut dispatcher(&exposed),
        1,
        &format!(
            "webhook-dispatcher: cannot read the client secret: {exposed} contains a secret and is accessible to other users (mode 0644): run chmod 600 {exposed}"
        ),
    );
    assert_error(
        dispatcher(&secret).args(["--health-listen", &occupied]),
        1,
        &format!(
            "webhook-dispatcher: cannot listen on {occupied}; choose another address with --health-listen, or port 0 for any free one: Address already in use (os error 98)"
        ),
    );
    assert_usage_error(
        dispatcher(&secret).env("DELIVERY_SEND_TIMEOUT", "soon"),
        "error: invalid value 'soon' for '--send-timeout <DURATION>': not a duration above zero: write it as `500ms`, `15s` or `30d`\n",
    );
}
