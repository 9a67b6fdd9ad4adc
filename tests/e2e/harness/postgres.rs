//! A temporary PostgreSQL cluster: one per test process, one database per test, removed on exit.

use std::{
    path::PathBuf,
    process::Command,
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

use super::{postgres_programs, resource_script::ResourceScript};

/// Creates a cluster, prints its directory, and removes it when standard input closes. It listens
/// on a unix socket only. Commits are flushed as in production; only torn-page protection, which
/// matters after a power loss, is off. It records the statements of each database; if
/// `DELIVERY_TEST_PLANS` names a file, it writes their plans there, made without sequential scans.
const RESOURCE_SCRIPT: &str = r#"
set -eu
bin=$1
directory=$(mktemp -d /tmp/delivery-postgres.XXXXXX)
trap 'rm -rf "$directory"' EXIT
"$bin/initdb" --pgdata="$directory/data" --username=delivery --auth=trust --encoding=UTF8 \
    --locale=C --no-sync >"$directory/log" 2>&1 || { cat "$directory/log" >&2; exit 1; }
"$bin/postgres" -D "$directory/data" -k "$directory" -c listen_addresses= \
    -c max_connections=300 -c shared_buffers=64MB -c full_page_writes=off \
    -c fsync=on -c synchronous_commit=on -c shared_preload_libraries=pg_stat_statements \
    -c pg_stat_statements.max=20000 -c pg_stat_statements.track_utility=off \
    ${DELIVERY_TEST_PLANS:+-c log_line_prefix=%a: -c session_preload_libraries=auto_explain \
    -c auto_explain.log_format=json -c auto_explain.log_min_duration=0 -c enable_seqscan=off} \
    >>"${DELIVERY_TEST_PLANS:-$directory/log}" 2>&1 </dev/null &
postgres=$!
tries=0
until "$bin/pg_isready" --quiet --host="$directory"; do
    tries=$((tries + 1))
    kill -0 $postgres 2>/dev/null && [ $tries -lt 1200 ] || { cat "$directory/log" >&2; exit 1; }
    sleep 0.05
done
"$bin/psql" --no-psqlrc --quiet --host="$directory" --username=delivery --dbname=postgres \
    --command='CREATE EXTENSION pg_stat_statements' >&2
echo "$directory"
cat >/dev/null
kill -QUIT $postgres
wait $postgres || true
"#;

struct Cluster {
    /// The directory of the PostgreSQL programs.
    programs: PathBuf,
    /// The directory of the socket.
    directory: String,
    databases: AtomicU32,
    _script: ResourceScript,
}

static CLUSTER: LazyLock<Option<Cluster>> = LazyLock::new(|| postgres_programs::find().map(start));

/// Creates a database and returns its URL; `None` without PostgreSQL.
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

fn start(programs: PathBuf) -> Cluster {
    let mut command = postgres_programs::resource_script(RESOURCE_SCRIPT, &programs);
    let (script, directory) = ResourceScript::start(&mut command);
    assert!(!directory.is_empty(), "PostgreSQL did not start");
    Cluster {
        programs,
        directory,
        databases: AtomicU32::new(0),
        _script: script,
    }
}
