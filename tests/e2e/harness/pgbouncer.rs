//! `PgBouncer` in front of a test's PostgreSQL, in transaction mode, configured as
//! `docs/postgresql.md` says.

use super::{installed, postgres_programs, resource_script::ResourceScript};

const DOCUMENTATION: &str = include_str!("../../../docs/postgresql.md");

/// Starts `PgBouncer`, prints the directory of its socket, and stops it when standard input closes.
/// `PgBouncer` uses the last value of a setting. A second `[pgbouncer]` would reset the settings of the
/// first: ours follow the documented ones in one section.
const RESOURCE_SCRIPT: &str = r#"
set -eu
pgbouncer=$1 documented=$2 port=$3 postgres=$4 settings=$5
directory=$(mktemp -d /tmp/delivery-pgbouncer.XXXXXX)
trap 'rm -rf "$directory"' EXIT
echo '"delivery" ""' >"$directory/users"
cat >"$directory/pgbouncer.ini" <<END
$documented
listen_addr =
unix_socket_dir = $directory
auth_type = trust
auth_file = $directory/users
$settings
[databases]
* = host=$postgres
END
"$pgbouncer" "$directory/pgbouncer.ini" >"$directory/log" 2>&1 </dev/null &
pid=$!
tries=0
until [ -S "$directory/.s.PGSQL.$port" ]; do
    tries=$((tries + 1))
    kill -0 $pid 2>/dev/null && [ $tries -lt 1200 ] || { cat "$directory/log" >&2; exit 1; }
    sleep 0.05
done
echo "$directory"
cat >/dev/null
kill $pid
wait $pid || true
"#;

/// A running `PgBouncer`.
pub(crate) struct PgBouncer {
    directory: String,
    port: String,
    _script: ResourceScript,
}

impl PgBouncer {
    /// Starts one for the server whose socket is in the directory `postgres`, with further settings:
    /// `name = value`, one a line. `None`, with a message on stderr, without the program.
    pub(crate) fn start(postgres: &str, settings: &str) -> Option<Self> {
        let program = installed::find("pgbouncer", "the tests through PgBouncer")?;
        let (_, block) = DOCUMENTATION.split_once("```ini\n").unwrap();
        let (documented, _) = block.split_once("```").unwrap();
        let mut lines = documented.lines();
        let port = lines.find_map(|line| line.strip_prefix("listen_port = "));
        let port = port.unwrap().to_owned();
        let mut command = postgres_programs::resource_script(RESOURCE_SCRIPT, &program);
        command.args([documented, &port, postgres, settings]);
        let (script, directory) = ResourceScript::start(&mut command);
        assert!(!directory.is_empty(), "PgBouncer did not start");
        Some(Self {
            directory,
            port,
            _script: script,
        })
    }

    /// The URL of a database, with the parameter that `PgBouncer` before 1.21 requires.
    pub(crate) fn url(&self, database: &str) -> String {
        let url = self.url_without_parameter(database);
        format!("{url}&statement-cache-capacity=0")
    }

    pub(crate) fn url_without_parameter(&self, database: &str) -> String {
        let (directory, port) = (&self.directory, &self.port);
        format!("postgres://delivery@localhost/{database}?host={directory}&port={port}")
    }

    /// The directory of its socket.
    pub(crate) fn directory(&self) -> &str {
        &self.directory
    }
}
