//! A PostgreSQL server of a test's own that can be killed and started again, set up as in
//! production: every commit is flushed.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};

/// Set to `1` where the PostgreSQL part of the tests must not be skipped.
const REQUIRED: &str = "DELIVERY_TEST_REQUIRE_POSTGRES";

/// Makes a data directory, says where, and does what it is told line by line until standard
/// input ends: the pipe's other end is ours, so it ends with this process, however that comes
/// about. Nothing but a unix socket is listened on.
const GUARDIAN: &str = r#"
set -eu
bin=$1
settings=$2
directory=$(mktemp -d /tmp/delivery-crash.XXXXXX)
postgres=0
trap 'rm -rf "$directory"' EXIT
"$bin/initdb" --pgdata="$directory/data" --username=delivery --auth=trust --encoding=UTF8 \
    --locale=C --no-sync >"$directory/log" 2>&1 || { cat "$directory/log" >&2; exit 1; }
start() {
    tries=0
    until [ "$postgres" -gt 0 ] && "$bin/pg_isready" --quiet --host="$directory"; do
        # For a moment its predecessor's children may hold the shared memory it needs.
        if [ "$postgres" -eq 0 ] || ! kill -0 "$postgres" 2>/dev/null; then
            "$bin/postgres" -D "$directory/data" -k "$directory" -c listen_addresses= \
                $settings >>"$directory/log" 2>&1 </dev/null &
            postgres=$!
        fi
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || { cat "$directory/log" >&2; exit 1; }
        sleep 0.05
    done
}
end() {
    # The shell would say that it was killed.
    wait "$postgres" 2>/dev/null || true
    postgres=0
}
start
echo "$directory"
while read -r order; do
    case $order in
        start) start ;;
        kill) kill -KILL "$postgres"; end ;;
        immediate)
            "$bin/pg_ctl" stop --silent --no-wait --mode=immediate --pgdata="$directory/data"
            end ;;
    esac
    echo "done"
done
[ "$postgres" -eq 0 ] || { kill -QUIT "$postgres"; end; }
"#;

pub(crate) struct Postgres {
    programs: PathBuf,
    directory: String,
    guardian: Child,
    answers: BufReader<ChildStdout>,
}

impl Postgres {
    /// Starts one; `None`, said on stderr, on a machine without PostgreSQL.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with("")
    }

    /// Starts one with settings: `-c name=value`.
    pub(crate) fn start_with(settings: &str) -> Option<Self> {
        let Some(programs) = find_programs() else {
            let required = std::env::var_os(REQUIRED).is_some_and(|value| value == "1");
            assert!(
                !required,
                "PostgreSQL is not installed, and {REQUIRED} is set"
            );
            crate::say("PostgreSQL is not installed: a test is SKIPPED");
            return None;
        };
        let mut guardian = unprivileged_shell()
            .args(["-c", GUARDIAN, "guardian"])
            .arg(&programs)
            .arg(settings)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C ends the tests; the guardian ends after them, with its work done.
            .process_group(0)
            .spawn()
            .unwrap();
        let mut answers = BufReader::new(guardian.stdout.take().unwrap());
        let directory = line(&mut answers);
        Some(Self {
            programs,
            directory,
            guardian,
            answers,
        })
    }

    pub(crate) fn url(&self) -> String {
        let directory = &self.directory;
        format!("postgres://delivery@localhost/postgres?host={directory}")
    }

    /// `kill -9` of the postmaster.
    pub(crate) fn kill(&mut self) {
        self.order("kill");
    }

    /// `pg_ctl stop -m immediate`: no checkpoint, so that the next start recovers from the log.
    pub(crate) fn stop_immediately(&mut self) {
        self.order("immediate");
    }

    /// Starts it again and waits until it accepts connections.
    pub(crate) fn start_again(&mut self) {
        self.order("start");
    }

    /// `pg_terminate_backend` of every client's.
    pub(crate) fn terminate_backends(&self) {
        self.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        );
    }

    /// Runs a statement.
    pub(crate) fn sql(&self, statement: &str) {
        let output = self.psql(statement).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "psql: {errors}");
    }

    /// Starts statements, all in one transaction, that are to be waited for.
    pub(crate) fn start_sql(&self, statements: &str) -> Child {
        let mut psql = self.psql(statements);
        psql.stdout(Stdio::null()).spawn().unwrap()
    }

    fn psql(&self, statement: &str) -> Command {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["--host", &self.directory, "--username=delivery"])
            .args(["--dbname=postgres", "--quiet", "--no-psqlrc"])
            .args(["--set=ON_ERROR_STOP=1", "--command", statement]);
        psql
    }

    fn order(&mut self, order: &str) {
        let stdin = self.guardian.stdin.as_mut().unwrap();
        writeln!(stdin, "{order}").unwrap();
        assert_eq!(line(&mut self.answers), "done");
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.guardian.stdin.take());
        let _ = self.guardian.wait();
    }
}

fn line(answers: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    answers.read_line(&mut line).unwrap();
    assert!(!line.is_empty(), "PostgreSQL did not start");
    line.trim_end().to_owned()
}

/// PostgreSQL refuses to run as root; its package brings a user of its own.
fn unprivileged_shell() -> Command {
    let id = Command::new("id").arg("-u").output().unwrap();
    if id.stdout.trim_ascii() != b"0" {
        return Command::new("sh");
    }
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=postgres",
        "--regid=postgres",
        "--clear-groups",
        "sh",
    ]);
    command
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
    ["initdb", "postgres", "pg_ctl", "pg_isready", "psql"]
        .iter()
        .all(|program| programs.join(program).is_file())
}
