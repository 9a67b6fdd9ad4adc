//! A PostgreSQL server that a test can kill and restart, configured as in production: every commit
//! is flushed.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{postgres_programs, psql_session::PsqlSession, resource_script::ResourceScript};

/// Starts a server in a new directory and prints its path. Then executes commands from standard
/// input (see [`ResourceScript`]). The server listens on a unix socket only.
const RESOURCE_SCRIPT: &str = r#"
set -eu
bin=$1
settings=$2
environment=$3
directory=$(mktemp -d /tmp/delivery-crash.XXXXXX)
data=$directory/data
postgres=0
trap 'rm -rf "$directory"' EXIT
"$bin/initdb" --pgdata="$data" --username=delivery --auth=trust --encoding=UTF8 \
    --locale=C --no-sync >"$directory/log" 2>&1 || { cat "$directory/log" >&2; exit 1; }
start() {
    tries=0
    until [ "$postgres" -gt 0 ] && "$bin/pg_isready" --quiet --host="$directory"; do
        # Children of the previous server may still use its shared memory.
        if [ "$postgres" -eq 0 ] || ! kill -0 "$postgres" 2>/dev/null; then
            env $environment "$bin/postgres" -D "$data" -k "$directory" \
                -c listen_addresses= $settings >>"$directory/log" 2>&1 </dev/null &
            postgres=$!
        fi
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || { cat "$directory/log" >&2; exit 1; }
        sleep 0.05
    done
}
# Signals the server first, so that it forks no more, and then its children.
signal() {
    kill "-$1" "$postgres"
    # A child may have exited.
    for child in $(ps -o pid= --ppid "$postgres"); do kill "-$1" "$child" 2>/dev/null || true; done
}
reap() {
    # Suppresses the shell's message about the kill.
    wait "$postgres" 2>/dev/null || true
    postgres=0
}
start
echo "$directory"
while read -r command; do
    case $command in
        start) start ;;
        kill) kill -KILL "$postgres"; reap ;;
        fast | immediate)
            "$bin/pg_ctl" stop --silent --no-wait --mode="$command" --pgdata="$data"
            reap ;;
        pause) signal STOP ;;
        resume) signal CONT ;;
        back_up)
            "$bin/pg_basebackup" --host="$directory" --username=delivery \
                --pgdata="$directory/backup" --wal-method=stream --checkpoint=fast
            "$bin/pg_verifybackup" --quiet "$directory/backup" ;;
        restore)
            kill -KILL "$postgres"; reap
            rm -r "$data"
            data=$directory/backup
            start ;;
    esac
    echo "done"
done
[ "$postgres" -eq 0 ] || { signal CONT; kill -QUIT "$postgres"; reap; }
"#;

pub(crate) struct Postgres {
    programs: PathBuf,
    directory: String,
    resource_script: ResourceScript,
}

impl Postgres {
    /// Starts a server; `None`, with a message on stderr, on a machine without PostgreSQL.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with("")
    }

    /// Starts a server with settings: `-c name=value`.
    pub(crate) fn start_with(settings: &str) -> Option<Self> {
        Self::start_configured(settings, "")
    }

    /// Starts a server with environment variables, whose values contain no spaces.
    pub(crate) fn start_with_environment(variables: &[(&str, String)]) -> Option<Self> {
        let variables = variables.iter();
        let variables = variables.map(|(name, value)| format!("{name}={value} "));
        Self::start_configured("", &variables.collect::<String>())
    }

    fn start_configured(settings: &str, environment: &str) -> Option<Self> {
        let programs = postgres_programs::find()?;
        let mut script = postgres_programs::resource_script(RESOURCE_SCRIPT, &programs);
        let (resource_script, directory) =
            ResourceScript::start(script.args([settings, environment]));
        assert!(!directory.is_empty(), "PostgreSQL did not start");
        Some(Self {
            programs,
            directory,
            resource_script,
        })
    }

    pub(crate) fn url(&self) -> String {
        let directory = &self.directory;
        format!("postgres://delivery@localhost/postgres?host={directory}")
    }

    /// The path of its socket.
    pub(crate) fn socket(&self) -> PathBuf {
        Path::new(&self.directory).join(".s.PGSQL.5432")
    }

    /// `pg_ctl stop -m fast`: disconnects clients and writes a checkpoint.
    pub(crate) fn stop(&mut self) {
        self.resource_script.execute("fast");
    }

    /// Stops all its processes (SIGSTOP); connections stay open.
    pub(crate) fn pause(&mut self) {
        self.resource_script.execute("pause");
    }

    /// Continues its processes (SIGCONT).
    pub(crate) fn resume(&mut self) {
        self.resource_script.execute("resume");
    }

    /// The directory of its socket.
    pub(crate) fn directory(&self) -> &str {
        &self.directory
    }

    /// `kill -9` of the postmaster.
    pub(crate) fn kill(&mut self) {
        self.resource_script.execute("kill");
    }

    /// `pg_ctl stop -m immediate`: no checkpoint, so the next start recovers from the write-ahead
    /// log.
    pub(crate) fn stop_immediately(&mut self) {
        self.resource_script.execute("immediate");
    }

    /// Restarts it and waits until it accepts connections.
    pub(crate) fn restart(&mut self) {
        self.resource_script.execute("start");
    }

    /// `pg_basebackup` with the write-ahead log of its duration, and `pg_verifybackup`.
    pub(crate) fn back_up(&mut self) {
        self.resource_script.execute("back_up");
    }

    /// Loses the server and its data directory, and starts another on the backup.
    pub(crate) fn restore(&mut self) {
        self.resource_script.execute("restore");
    }

    /// Restarts it as a standby without a primary: it accepts reads only.
    pub(crate) fn become_standby(&mut self) {
        self.stop();
        std::fs::write(Path::new(&self.directory).join("data/standby.signal"), "").unwrap();
        self.restart();
    }

    /// Ends the recovery of a standby.
    pub(crate) fn promote(&self) {
        assert_eq!(self.query("SELECT pg_promote()"), "t");
    }

    /// Terminates the backend of every client.
    pub(crate) fn terminate_backends(&self) {
        self.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        );
    }

    /// The number of lines of its log that contain a text.
    pub(crate) fn count_logged(&self, text: &str) -> usize {
        let log = std::fs::read(Path::new(&self.directory).join("log")).unwrap();
        let log = String::from_utf8_lossy(&log);
        log.lines().filter(|line| line.contains(text)).count()
    }

    /// Runs a statement.
    pub(crate) fn sql(&self, statement: &str) {
        self.query(statement);
    }

    /// The result of a statement: one line per row, columns separated by `|`.
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

    /// One of PostgreSQL's programs, with its connection by the usual environment variables.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.envs([("PGHOST", &*self.directory), ("PGUSER", "delivery")]);
        command
    }

    /// Starts a session that runs statements one after the other.
    pub(crate) fn session(&self, statements: &str) -> PsqlSession {
        PsqlSession::start(&mut self.psql(), statements)
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
