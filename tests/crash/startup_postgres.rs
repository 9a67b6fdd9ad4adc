//! Start-up errors of a PostgreSQL that cannot be used: the cause, and what to do.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::Command,
};

use crate::{
    files::Files,
    health::{get, readiness, wait_until_ready},
    postgres::Postgres,
    program::{self, PROGRAMS},
    reserved_addr::reserve_addr,
    server::Server,
    startup_errors::{Fixture, assert_error, migrate},
};

#[test]
fn a_core_reports_an_unusable_postgresql() {
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
    let fixture = Fixture::new();
    let socket = PathBuf::from(postgres.directory());
    let directory = socket.display();
    let start = |user: &str, database: &str| {
        let mut command = fixture.core();
        let url = format!("postgres://{user}@localhost/{database}?host={directory}");
        command.env("DELIVERY_DATABASE_URL", url);
        command
    };
    let assert_rejected = |command: &mut Command, reason: &str| {
        let message = format!("core-service: cannot open the database: {reason}");
        assert_error(command, 1, &message);
    };

    postgres.sql("CREATE ROLE guest LOGIN PASSWORD 'right'");
    assert_rejected(
        start("guest", "postgres").env("PGPASSWORD", "wrong"),
        &format!(
            "PostgreSQL at {directory} rejects the password of the user guest: correct it in PGPASSWORD, PGPASSFILE, DELIVERY_DATABASE_URL or --database-url-file"
        ),
    );
    assert_rejected(
        &mut start("nobody", "postgres"),
        &format!(
            "PostgreSQL at {directory} rejects the user nobody (no pg_hba.conf entry for host \"[local]\", user \"nobody\", database \"postgres\", no encryption): create the role, correct the user in the database's URL, or change pg_hba.conf"
        ),
    );
    assert_rejected(
        &mut start("delivery", "nothing"),
        &format!(
            "PostgreSQL at {directory} has no database nothing: create it (createdb), or correct its name in the database's URL"
        ),
    );

    let url_file = fixture.file(
        "url",
        0o600,
        &format!("postgres://delivery@localhost/postgres?host={directory}\n"),
    );
    let key = format!("--master-key-file={}", fixture.path("postgres.key"));
    let from_file = |arguments: &[&str]| {
        let mut command = fixture.core();
        command
            .args(arguments)
            .args(["--database-url-file", &url_file]);
        command
    };
    let not_bootstrapped = "this database has not been bootstrapped: run `core-service bootstrap` with the same database and master key first";
    assert_rejected(&mut from_file(&[&key]), not_bootstrapped);
    assert_eq!(
        postgres.query("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"),
        "0"
    );
    program::json(&mut from_file(&["bootstrap", &key]));
    let record = |version: u32, description: &str| {
        postgres.sql(&format!(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES ({version}, '{description}', true, '', 0)"
        ));
    };
    let migrate = || {
        let mut command = migrate();
        command.args(["--database-url-file", &url_file]);
        command
    };
    // By its name, this migration of a later version only adds, so that an older program ignores it.
    record(9998, "add_later");
    let applied = program::output(&mut migrate());
    assert_eq!(String::from_utf8_lossy(&applied.stderr), "0 applied\n");
    assert!(applied.status.success());
    // This one may have removed what an older program uses.
    record(9999, "later");
    let newer = "the schema is newer than this program, which does not know the migration 9999_later: start the version that applied it, or a later one";
    assert_rejected(&mut from_file(&[&key]), newer);
    assert_error(&mut migrate(), 1, newer);

    // A core waits for its promotion.
    postgres.become_standby();
    let standby = "this PostgreSQL is a standby, which accepts no writes: name the primary in the database's URL, or wait until a failover has promoted one";
    assert_error(&mut migrate(), 1, standby);
    let nothing = format!("--master-key-file={}", fixture.path("nothing.key"));
    assert_rejected(&mut from_file(&["bootstrap", &nothing]), standby);

    postgres.kill();
    assert_rejected(
        &mut from_file(&["bootstrap", &key]),
        &format!(
            "cannot connect to PostgreSQL at {directory} (Connection refused (os error 111)): start it, or correct the database's URL"
        ),
    );
}

/// A core that is not ready and logs why, until waiting has mended it.
#[tokio::test(flavor = "multi_thread")]
async fn a_core_waits_for_a_postgresql_that_cannot_be_used_yet() {
    let Some(mut postgres) = Postgres::start() else {
        return;
    };
    postgres.sql("CREATE ROLE app LOGIN");
    postgres.sql("GRANT ALL ON SCHEMA public TO app");
    let files = Files::new();
    let health = reserve_addr();
    let database = [
        format!(
            "--database-url={}",
            postgres.url().replace("//delivery@", "//app@")
        ),
        format!("--master-key-file={}", files.path("master.key")),
    ];
    PROGRAMS.bootstrap(&database);
    let own = [
        "--listen=127.0.0.1:0".to_owned(),
        format!("--health-listen={health}"),
        "--geocoder=none".to_owned(),
    ];
    let arguments = [&database[..], &own].concat();
    let mut core = Server::new("core", &PROGRAMS.core, arguments, ("not ready", 1));
    let directory = postgres.directory().to_owned();
    let waits = async |core: &mut Server, reason: &str| {
        core.start().await;
        let reason = format!("cannot open the database: {reason}");
        let logged = core.wait_for_line("not ready, and waits").await;
        assert!(logged.ends_with(&reason), "{logged}");
        let answer = ("503".to_owned(), format!("{reason}\n"));
        assert_eq!(readiness(health).await, answer);
        assert_eq!(get(health, "/healthz").await.0, "200");
    };
    let becomes_ready = async |core: &mut Server| {
        wait_until_ready(health).await;
        let logged = core.output();
        let logged = logged
            .iter()
            .filter(|line| line.contains("not ready, and waits"));
        assert_eq!(logged.count(), 1);
        assert!(core.terminate().await.success());
    };

    postgres.kill();
    let refused = format!(
        "cannot connect to PostgreSQL at {directory} (Connection refused (os error 111)): start it, or correct the database's URL"
    );
    waits(&mut core, &refused).await;
    assert!(core.terminate().await.success());
    waits(&mut core, &refused).await;
    postgres.restart();
    wait_until_ready(health).await;
    assert!(core.terminate().await.success());

    postgres.sql("ALTER ROLE app CONNECTION LIMIT 0");
    let full = format!(
        "PostgreSQL at {directory} has no free connection (too many connections for role \"app\"): raise max_connections or the limit of the role, or run fewer cores"
    );
    waits(&mut core, &full).await;
    postgres.sql("ALTER ROLE app CONNECTION LIMIT -1");
    becomes_ready(&mut core).await;

    postgres.become_standby();
    let standby = "this PostgreSQL is a standby, which accepts no writes: name the primary in the database's URL, or wait until a failover has promoted one";
    waits(&mut core, standby).await;
    postgres.promote();
    becomes_ready(&mut core).await;

    postgres.sql("ALTER TABLE created_bytes DROP COLUMN deliveries");
    postgres.sql("DELETE FROM _sqlx_migrations WHERE version = 28");
    let dump = postgres.session(
        "BEGIN; LOCK TABLE created_bytes IN ACCESS SHARE MODE; SELECT 'locked'; SELECT pg_sleep(600);",
    );
    dump.wait_for("locked").await;
    let locked = "a migration waits for a lock that another session holds, such as a dump or another migration: let that end, or find it in pg_stat_activity and end it";
    waits(&mut core, locked).await;
    // Not the core's own, which may wait for the lock again.
    postgres
        .sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
    becomes_ready(&mut core).await;
}

/// The driver would take the list for the name of one host, and ignores `target_session_attrs`.
#[test]
fn every_program_with_a_database_refuses_a_url_for_several_hosts() {
    let fixture = Fixture::new();
    let url_file = fixture.file("several", 0o600, "postgres://a:5432,b:5432/delivery\n");
    let with_attribute = "postgres://localhost/delivery?target_session_attrs=read-write".to_owned();
    let commands = || {
        let mut bootstrap = fixture.core();
        bootstrap.arg("bootstrap");
        let mut delivery = program::command(&PROGRAMS.delivery);
        delivery.arg(format!("--data-dir={}", fixture.path("data")));
        let free = ["--rest-listen=127.0.0.1:0", "--core-listen=127.0.0.1:0"];
        delivery.args(free);
        [
            (fixture.core(), "core-service: "),
            (bootstrap, "core-service: "),
            (migrate(), ""),
            (delivery, ""),
        ]
    };
    for (variable, value, found) in [
        ("DELIVERY_DATABASE_URL_FILE", &url_file, "several hosts"),
        (
            "DELIVERY_DATABASE_URL",
            &with_attribute,
            "target_session_attrs",
        ),
    ] {
        for (mut command, name) in commands() {
            assert_error(
                command.env(variable, value),
                1,
                &format!(
                    "{name}the database URL has {found}, which is not supported: name one host that always leads to the primary, such as a virtual address, or a proxy that follows it (HAProxy with Patroni)"
                ),
            );
        }
    }
}
