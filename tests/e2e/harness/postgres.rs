//! A throw-away PostgreSQL cluster: one a test process, one database a test, gone with the process.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

/// Set to `1` where the PostgreSQL half of the tests must not be skipped.
const REQUIRED: &str = "DELIVERY_TEST_REQUIRE_POSTGRES";

/// Makes a cluster, says where, and keeps it until standard input ends: the pipe's other end is
/// ours, so it ends with this process, however that comes about. Nothing but a unix socket is
/// listened on. Commits are flushed as in production; only torn-page protection, which matters
/// to machines that lose power, is left out.
const GUARDIAN: &str = r#"
set -eu
bin=$1
directory=$(mktemp -d /tmp/delivery-postgres.XXXXXX)
trap 'rm -rf "$directory"' EXIT
"$bin/initdb" --pgdata="$directory/data" --username=delivery --auth=trust --encoding=UTF8 \
    --locale=C --no-sync >"$directory/log" 2>&1 || { cat "$directory/log" >&2; exit 1; }
"$bin/postgres" -D "$directory/data" -k "$directory" -c listen_addresses= \
    -c max_connections=300 -c shared_buffers=64MB -c full_page_writes=off \
    -c fsync=on -c synchronous_commit=on >"$directory/log" 2>&1 </dev/null &
postgres=$!
until "$bin/pg_isready" --quiet --host="$directory"; do
    kill -0 $postgres 2>/dev/null || { cat "$directory/log" >&2; exit 1; }
    sleep 0.05
done
echo "$directory"
cat >/dev/null
kill -QUIT $postgres
wait $postgres || true
"#;

struct Cluster {
    /// Where its programs are.
    programs: PathBuf,
    /// Where its socket is.
    directory: String,
    databases: AtomicU32,
    /// Holds the pipe's end.
    _guardian: Child,
}

static CLUSTER: LazyLock<Option<Cluster>> = LazyLock::new(|| {
    let programs = find_programs();
    if programs.is_none() {
        #[expect(clippy::disallowed_methods, reason = "a test's own switch")]
        let required = std::env::var(REQUIRED).is_ok_and(|value| value == "1");
        assert!(
            !required,
            "PostgreSQL is not installed, and {REQUIRED} is set"
        );
        // Past the test runner's capture: whoever reads the result must know what it covers.
        let _ = std::io::stderr().write_all(
            b"\n*** PostgreSQL is not installed: its half of the tests is SKIPPED ***\n",
        );
    }
    programs.map(start)
});

/// Makes a database and gives its URL; `None` without PostgreSQL.
pub(super) fn create_database() -> Option<String> {
    let cluster = CLUSTER.as_ref()?;
    let number = cluster.databases.fetch_add(1, Ordering::Relaxed);
    let name = format!("test_{number}");

    let output = Command::new(cluster.programs.join("createdb"))
        .args(["--username=delivery", "--host", &cluster.directory, &name])
        .output()
        .unwrap();

    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "createdb: {errors}");
    let directory = &cluster.directory;
    Some(format!(
        "postgres://delivery@localhost/{name}?host={directory}"
    ))
}

/// The directory of the newest installed version: Debian's place, or one in `PATH`.
fn find_programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let newest = versions
        .filter_map(|version| {
            let path = version.ok()?.path();
            let number: u32 = path.file_name()?.to_str()?.parse().ok()?;
            Some((number, path.join("bin")))
        })
        .filter(|(_, programs)| is_complete(programs))
        .max();
    let path = std::env::var_os("PATH").unwrap_or_default();
    newest
        .map(|(_, programs)| programs)
        .or_else(|| std::env::split_paths(&path).find(|programs| is_complete(programs)))
}

fn is_complete(programs: &Path) -> bool {
    ["initdb", "postgres", "pg_isready", "createdb"]
        .iter()
        .all(|program| programs.join(program).is_file())
}

fn start(programs: PathBuf) -> Cluster {
    // PostgreSQL refuses to run as root; its package brings a user of its own.
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid=postgres",
            "--regid=postgres",
            "--clear-groups",
            "sh",
        ]);
        command
    } else {
        Command::new("sh")
    };
    let mut guardian = command
        .args(["-c", GUARDIAN, "guardian"])
        .arg(&programs)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Ctrl-C ends the tests; the guardian ends after them, with its work done.
        .process_group(0)
        .spawn()
        .unwrap();

    let mut directory = String::new();
    BufReader::new(guardian.stdout.take().unwrap())
        .read_line(&mut directory)
        .unwrap();
    assert!(!directory.is_empty(), "PostgreSQL did not start");
    Cluster {
        programs,
        directory: directory.trim_end().to_owned(),
        databases: AtomicU32::new(0),
        _guardian: guardian,
    }
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().unwrap();
    output.stdout.trim_ascii() == b"0"
}
