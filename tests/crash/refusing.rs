//! Starts that can't be: each program says in one sentence what is wrong and what to do, and
//! ends with status 2 if it was called wrongly, else with 1.

use std::{
    fs::{self, Permissions},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::Command,
};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;

use crate::{
    postgres::Postgres,
    program::{self, PROGRAMS},
    server::reserve_addr,
};

/// A directory in which a platform has been bootstrapped over SQLite.
struct Ground {
    directory: TempDir,
    /// An address that somebody else listens on.
    taken: TcpListener,
}

impl Ground {
    fn new() -> Self {
        let ground = Self {
            directory: tempfile::tempdir().unwrap(),
            taken: TcpListener::bind("127.0.0.1:0").unwrap(),
        };
        program::json(ground.core().arg("bootstrap").arg(ground.sqlite()));
        ground
    }

    fn path(&self, name: &str) -> String {
        self.directory
            .path()
            .join(name)
            .to_str()
            .unwrap()
            .to_owned()
    }

    fn file(&self, name: &str, mode: u32, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    fn sqlite(&self) -> String {
        format!("--database-url=sqlite://{}?mode=rwc", self.path("sqlite"))
    }

    fn taken(&self) -> String {
        self.taken.local_addr().unwrap().to_string()
    }

    /// A core that would start, once it has a database.
    fn core(&self) -> Command {
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

/// The program ends with this status, having said this line and no other.
#[track_caller]
fn refuses(command: &mut Command, status: i32, sentence: &str) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, format!("{sentence}\n"), "{command:?}");
    assert_eq!(output.status.code(), Some(status), "{command:?}");
}

/// The program takes it for a usage error: what it says begins so, and ends with the advice to
/// ask for help.
#[track_caller]
fn is_misused(command: &mut Command, beginning: &str) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with(beginning), "{command:?}: {said}");
    assert!(said.contains("--help"), "{command:?}: {said}");
    assert_eq!(output.status.code(), Some(2), "{command:?}");
}

#[test]
fn a_core_says_what_is_wrong_with_its_master_key() {
    let ground = Ground::new();
    let start = |key: &str| {
        let mut command = ground.core();
        command
            .arg(ground.sqlite())
            .arg("--master-key-file")
            .arg(key);
        command
    };
    let right = fs::read_to_string(ground.path("master.key")).unwrap();

    let missing = ground.path("nowhere");
    refuses(
        &mut start(&missing),
        1,
        &format!(
            "core-service: the master key {missing} is not there: create it with `core-service bootstrap`, or restore it from your backup"
        ),
    );
    let exposed = ground.file("exposed.key", 0o644, &right);
    refuses(
        &mut start(&exposed),
        1,
        &format!(
            "core-service: cannot use the master key: {exposed} may be read by others (mode 0644), and it holds a secret: chmod 600 {exposed}"
        ),
    );
    for text in [
        "",
        "c2hvcnQ=\n",
        "not Base64 at all, but forty-four characters",
    ] {
        let short = ground.file("short.key", 0o600, text);
        refuses(
            &mut start(&short),
            1,
            &format!(
                "core-service: the master key {short} is not 32 bytes of Base64; restore it from your backup, nothing sealed with it can be read without it"
            ),
        );
    }
    let another = Ground::new();
    let another = another.path("master.key");
    let other = ground.file("other.key", 0o600, &fs::read_to_string(another).unwrap());
    refuses(
        &mut start(&other),
        1,
        &format!(
            "core-service: the master key {other} is not the one that sealed what is in this database: give the right one with --master-key-file, or the database that belongs to this key"
        ),
    );
}

#[test]
fn a_core_says_what_is_wrong_with_its_addresses_and_settings() {
    let ground = Ground::new();
    let taken = ground.taken();
    for flag in ["--listen", "--health-listen"] {
        refuses(
            ground.core().arg(ground.sqlite()).args([flag, &taken]),
            1,
            &format!(
                "core-service: cannot listen on {taken}; choose another address with {flag}, or port 0 for any free one: Address already in use (os error 98)"
            ),
        );
    }
    let everywhere = format!("0.0.0.0:{}", reserve_addr().port());
    refuses(
        ground
            .core()
            .arg(ground.sqlite())
            .args(["--listen", &everywhere]),
        1,
        &format!(
            "core-service: gRPC on {everywhere} would pass tokens and secrets in the clear: serve it over TLS (core-service has --tls-certificate and --tls-key), listen on loopback, or say --allow-plaintext"
        ),
    );
    is_misused(
        ground
            .core()
            .arg(ground.sqlite())
            .env("DELIVERY_CORE_LISTEN", "here"),
        "error: invalid value 'here' for '--listen <LISTEN>': invalid socket address syntax\n",
    );
    is_misused(
        &mut ground.core(),
        "error: the following required arguments were not provided:\n  --database-url <URL>\n",
    );
    for program in [&PROGRAMS.core, &PROGRAMS.delivery] {
        is_misused(
            program::command(program)
                .arg("--database-url=postgres://delivery:secret@host/delivery"),
            "error: a password in --database-url shows in the list of processes: leave it out and set PGPASSWORD or PGPASSFILE, or put the whole URL into a file for --database-url-file\n",
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
            is_misused(
                program::command(program).args(["--database-url=sqlite://x", flag]),
                &format!("error: a key in {name} shows in the list of processes: set {variable}\n"),
            );
        }
    }
}

#[test]
fn a_core_says_what_is_wrong_with_its_tls_files() {
    let ground = Ground::new();
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = ground.file("certificate.pem", 0o644, &cert.pem());
    let key = ground.file("key.pem", 0o600, &signing_key.serialize_pem());
    let other = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let other = ground.file("other.pem", 0o600, &other.signing_key.serialize_pem());
    let exposed = ground.file("exposed.pem", 0o644, &signing_key.serialize_pem());
    let nowhere = ground.path("nowhere.pem");
    let start = |arguments: &[(&str, &str)]| {
        let mut command = ground.core();
        command.arg(ground.sqlite());
        for (flag, file) in arguments {
            command.args([flag, file]);
        }
        command
    };
    let tls = |certificate, key| start(&[("--tls-certificate", certificate), ("--tls-key", key)]);

    for (mut command, why) in [
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
                "{key} is not in PEM form: a certificate between BEGIN and END lines is needed"
            ),
        ),
        (
            tls(&certificate, &other),
            format!(
                "the key {other} does not belong to the certificate {certificate}: give those made together"
            ),
        ),
        (
            tls(&certificate, &exposed),
            format!(
                "{exposed} may be read by others (mode 0644), and it holds a secret: chmod 600 {exposed}"
            ),
        ),
    ] {
        let sentence = format!("core-service: gRPC cannot be served over TLS: {why}");
        refuses(&mut command, 1, &sentence);
    }
    is_misused(
        &mut start(&[("--tls-certificate", &certificate)]),
        "error: the following required arguments were not provided:\n  --tls-key <FILE>\n",
    );
}

#[test]
fn gateways_and_dispatchers_say_what_is_wrong_with_their_settings() {
    let ground = Ground::new();
    let taken = ground.taken();
    let gateway = || program::command(&PROGRAMS.gateway);
    refuses(
        gateway().args(["--listen", &taken]),
        1,
        &format!(
            "rest-gateway: cannot listen on {taken}; choose another address with --listen, or port 0 for any free one: Address already in use (os error 98)"
        ),
    );
    is_misused(
        gateway().env("DELIVERY_REST_MAX_BODY", "much"),
        "error: invalid value 'much' for '--max-body <MAX_BODY>': invalid digit found in string\n",
    );

    is_misused(
        gateway().arg("--core-url=ftp://core"),
        "error: invalid value 'ftp://core' for '--core-url <CORE_URL>': `ftp://core` is no address of a core: write it as http://HOST:PORT, or https://HOST:PORT for TLS\n",
    );
    refuses(
        gateway().args(["--listen=127.0.0.1:0", "--core-url=http://core.example:1"]),
        1,
        "rest-gateway: tokens and secrets would pass in the clear to http://core.example:1: use https, or say --allow-plaintext-core",
    );

    let secret = ground.file("secret", 0o600, "secret\n");
    let exposed = ground.file("exposed", 0o644, "secret\n");
    let nowhere = ground.path("nowhere");
    let dispatcher = |secret: &str| {
        let mut command = Ground::dispatcher();
        command.env("DELIVERY_CLIENT_SECRET_FILE", secret);
        command
    };
    refuses(
        &mut Ground::dispatcher(),
        1,
        "webhook-dispatcher: no client secret: name its file with --client-secret-file or set DELIVERY_CLIENT_SECRET",
    );
    refuses(
        dispatcher(&secret).env_remove("DELIVERY_CORE_URL"),
        1,
        "webhook-dispatcher: no core is named: give --core-url",
    );
    refuses(
        &mut dispatcher(&nowhere),
        1,
        &format!(
            "webhook-dispatcher: the client secret cannot be taken from its file: cannot read {nowhere}: No such file or directory (os error 2)"
        ),
    );
    refuses(
        &mut dispatcher(&exposed),
        1,
        &format!(
            "webhook-dispatcher: the client secret cannot be taken from its file: {exposed} may be read by others (mode 0644), and it holds a secret: chmod 600 {exposed}"
        ),
    );
    refuses(
        dispatcher(&secret).args(["--health-listen", &taken]),
        1,
        &format!(
            "webhook-dispatcher: cannot listen on {taken}; choose another address with --health-listen, or port 0 for any free one: Address already in use (os error 98)"
        ),
    );
    is_misused(
        dispatcher(&secret).env("DELIVERY_SEND_TIMEOUT", "soon"),
        "error: invalid value 'soon' for '--send-timeout <DURATION>': not a duration above zero: write it as 15s or 500ms\n",
    );
}

#[test]
fn a_core_says_what_is_wrong_with_its_postgresql() {
    let hba = tempfile::NamedTempFile::new().unwrap();
    fs::write(
        hba.path(),
        "local all delivery trust\nlocal all guest scram-sha-256\n",
    )
    .unwrap();
    fs::set_permissions(hba.path(), Permissions::from_mode(0o644)).unwrap();
    let settings = format!("-c hba_file={}", hba.path().display());
    let Some(mut postgres) = Postgres::start_with(&settings) else {
        return;
    };
    let ground = Ground::new();
    let socket = PathBuf::from(postgres.directory());
    let place = socket.display();
    let start = |user: &str, database: &str| {
        let mut command = ground.core();
        let url = format!("postgres://{user}@localhost/{database}?host={place}");
        command.env("DELIVERY_DATABASE_URL", url);
        command
    };
    let refused = |command: &mut Command, why: &str| {
        let sentence = format!("core-service: cannot open the database: {why}");
        refuses(command, 1, &sentence);
    };

    postgres.sql("CREATE ROLE guest LOGIN PASSWORD 'right'");
    refused(
        start("guest", "postgres").env("PGPASSWORD", "wrong"),
        &format!(
            "PostgreSQL at {place} refuses the password of the user guest: correct it in PGPASSWORD, PGPASSFILE, DELIVERY_DATABASE_URL or --database-url-file"
        ),
    );
    refused(
        &mut start("nobody", "postgres"),
        &format!(
            "PostgreSQL at {place} does not let the user nobody in (no pg_hba.conf entry for host \"[local]\", user \"nobody\", database \"postgres\", no encryption): create the role, correct the user in the database's URL, or see pg_hba.conf"
        ),
    );
    refused(
        &mut start("delivery", "nothing"),
        &format!(
            "PostgreSQL at {place} has no database nothing: create it (createdb), or correct its name in the database's URL"
        ),
    );

    let url_file = ground.file(
        "url",
        0o600,
        &format!("postgres://delivery@localhost/postgres?host={place}\n"),
    );
    let key = format!("--master-key-file={}", ground.path("postgres.key"));
    let from_file = |arguments: &[&str]| {
        let mut command = ground.core();
        command
            .args(arguments)
            .args(["--database-url-file", &url_file]);
        command
    };
    program::json(&mut from_file(&["bootstrap", &key]));
    postgres.sql("INSERT INTO seaql_migrations (version, applied_at) VALUES ('m9999_later', 0)");
    refused(
        &mut from_file(&[&key]),
        "its schema is newer than this program, which does not know the step m9999_later: start the version that applied it, or a later one",
    );

    postgres.kill();
    refused(
        &mut from_file(&[&key]),
        &format!(
            "no PostgreSQL answers at {place} (Connection refused (os error 111)): start it, or correct the database's URL"
        ),
    );
}
