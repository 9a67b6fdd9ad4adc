//! A PostgreSQL server of a test's own that can be killed and started again, set up as in
//! production: every commit is flushed.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::{guardian::Guardian, postgres_programs, session::Session};

/// Makes a data directory and says where. Nothing but a unix socket is listened on.
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
# A signal to the server and, because it can have no new ones then, to all its children.
signal() {
    kill "-$1" "$postgres"
    # One of them may have ended meanwhile.
    for child in $(ps -o pid= --ppid "$postgres"); do kill "-$1" "$child" 2>/dev/null || true; done
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
        fast | immediate)
            "$bin/pg_ctl" stop --silent --no-wait --mode="$order" --pgdata="$directory/data"
            end ;;
        pause) signal STOP ;;
        resume) signal CONT ;;
    esac
    echo "done"
done
[ "$postgres" -eq 0 ] || { signal CONT; kill -QUIT "$postgres"; end; }
"#;

pub(crate) struct Postgres {
    programs: PathBuf,
    directory: String,
    guardian: Guardian,
}

impl Postgres {
    /// Starts one; `None`, said on stderr, on a machine without PostgreSQL.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with("")
    }

    /// Starts one with settings: `-c name=value`.
    pub(crate) fn start_with(settings: &str) -> Option<Self> {
        let programs = postgres_programs::find()?;
        let mut script = postgres_programs::guardian(GUARDIAN, &programs);
        let (guardian, directory) = Guardian::start(script.arg(settings));
        assert!(!directory.is_empty(), "PostgreSQL did not start");
        Some(Self {
            programs,
            directory,
            guardian,
        })
    }

    pub(crate) fn url(&self) -> String {
        let directory = &self.directory;
        format!("postgres://delivery@localhost/postgres?host={directory}")
    }

    /// The socket it listens on.
    pub(crate) fn socket(&self) -> PathBuf {
        Path::new(&self.directory).join(".s.PGSQL.5432")
    }

    /// `pg_ctl stop -m fast`: clients are sent away, and everything is written down.
    pub(crate) fn stop(&mut self) {
        self.guardian.order("fast");
    }

    /// It stands still (SIGSTOP), with every connection open.
    pub(crate) fn pause(&mut self) {
        self.guardian.order("pause");
    }

    /// It goes on.
    pub(crate) fn resume(&mut self) {
        self.guardian.order("resume");
    }

    /// Where its socket is.
    pub(crate) fn directory(&self) -> &str {
        &self.directory
    }

    /// `kill -9` of the postmaster.
    pub(crate) fn kill(&mut self) {
        self.guardian.order("kill");
    }

    /// `pg_ctl stop -m immediate`: no checkpoint, so that the next start recovers from the log.
    pub(crate) fn stop_immediately(&mut self) {
        self.guardian.order("immediate");
    }

    /// Starts it again and waits until it accepts connections.
    pub(crate) fn start_again(&mut self) {
        self.guardian.order("start");
    }

    /// `pg_terminate_backend` of every client's.
    pub(crate) fn terminate_backends(&self) {
        self.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        );
    }

    /// How many lines of its log contain a text.
    pub(crate) fn logged(&self, text: &str) -> usize {
        let log = std::fs::read(Path::new(&self.directory).join("log")).unwrap();
        let log = String::from_utf8_lossy(&log);
        log.lines().filter(|line| line.contains(text)).count()
    }

    /// Runs a statement.
    pub(crate) fn sql(&self, statement: &str) {
        self.query(statement);
    }

    /// What a statement answers: a row a line, its columns separated by `|`.
    pub(crate) fn query(&self, statement: &str) -> String {
        let output = self
            .psql()
            .args(["-tA", "--command", statement])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "psql: {errors}");
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// Starts statements, all in one transaction, that are to be waited for.
    pub(crate) fn start_sql(&self, statements: &str) -> Child {
        let mut psql = self.psql();
        psql.args(["--command", statements]);
        psql.stdout(Stdio::null()).spawn().unwrap()
    }

    /// Runs statements one after the other, beside everything else.
    pub(crate) fn session(&self, statements: &str) -> Session {
        Session::start(&mut self.psql(), statements)
    }

    fn psql(&self) -> Command {
        let mut command = Command::new(self.programs.join("psql"));
        command
            .args(["--host", &self.directory, "--username=delivery"])
            .args(["--dbname=postgres", "--quiet", "--no-psqlrc"])
            .arg("--set=ON_ERROR_STOP=1");
        command
    }
}
