//! pgbench: inserts the rows of a create in one statement, reads a task by its key or reads a page of
//! deliveries, as fast as PostgreSQL can.

use std::{path::PathBuf, process::Command, time::Duration};

use crate::{load::Sample, postgres::Postgres, postgres_programs};

/// The script that inserts the rows of a create.
pub(crate) const CREATE: &str = "create.sql";

/// The script that reads a task.
pub(crate) const READ: &str = "read.sql";

/// The script that reads a page.
pub(crate) const LIST: &str = "list.sql";

pub(crate) struct Pgbench {
    program: PathBuf,
    directory: String,
}

impl Pgbench {
    /// Creates the tables that pgbench fills, `reference_…`: empty copies of those of deliveries and
    /// tasks, with their indexes. Copies the rows of one delivery into tables `template_…`.
    pub(crate) fn prepare(postgres: &Postgres) -> Self {
        postgres.sql(
            "CREATE TABLE template_deliveries AS SELECT * FROM deliveries LIMIT 1;
             CREATE TABLE template_tasks AS SELECT * FROM tasks
                 WHERE delivery_id = (SELECT id FROM template_deliveries);
             CREATE TABLE reference_deliveries (LIKE deliveries INCLUDING ALL);
             CREATE TABLE reference_tasks (LIKE tasks INCLUDING ALL)",
        );
        let deliveries = insert(postgres, "deliveries", &[("id", "gen_random_uuid()")]);
        let new_delivery = "(SELECT id FROM delivery)";
        let new_ids = [("id", "gen_random_uuid()"), ("delivery_id", new_delivery)];
        let tasks = insert(postgres, "tasks", &new_ids);
        let directory = postgres.directory().to_owned();
        let script = format!("WITH delivery AS ({deliveries} RETURNING id) {tasks};\n");
        std::fs::write(format!("{directory}/{CREATE}"), script).unwrap();
        let script = postgres.query(
            "SELECT format('SELECT * FROM tasks WHERE store_id = %L AND id = %L;', store_id, id)
             FROM template_tasks LIMIT 1",
        );
        std::fs::write(format!("{directory}/{READ}"), script).unwrap();
        let script = postgres.query(
            "SELECT format('SELECT * FROM (SELECT * FROM deliveries WHERE store_id = %L
                     ORDER BY created_at DESC, id DESC LIMIT 31) AS delivery
                 LEFT JOIN tasks ON tasks.store_id = delivery.store_id
                     AND tasks.delivery_id = delivery.id;', store_id)
             FROM template_deliveries",
        );
        std::fs::write(format!("{directory}/{LIST}"), script).unwrap();
        Self {
            program: postgres_programs::find().unwrap().join("pgbench"),
            directory,
        }
    }

    pub(crate) fn run(&self, script: &str, connections: usize, duration: Duration) -> Sample {
        // pgbench takes whole seconds.
        let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
        let output = Command::new(&self.program)
            .args(["--no-vacuum", "--protocol=prepared", "--jobs=2"])
            .arg(format!("--client={connections}"))
            .arg(format!("--time={seconds}"))
            .arg(format!("--file={}/{script}", self.directory))
            .args(["--host", &self.directory, "--username=delivery", "postgres"])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "pgbench: {errors}");
        let stdout = String::from_utf8_lossy(&output.stdout);
        let number = |prefix| {
            let line = stdout.lines().find_map(|line| line.strip_prefix(prefix));
            let number = line.unwrap().split_whitespace().next().unwrap();
            number.parse().unwrap()
        };
        Sample {
            requests: number("number of transactions actually processed: "),
            rate: number("tps = "),
            p99: None,
        }
    }
}

/// A statement that inserts the template's rows into the reference table, with other values in some
/// columns.
fn insert(postgres: &Postgres, table: &str, values: &[(&str, &str)]) -> String {
    let columns = postgres.query(&format!(
        "SELECT attname FROM pg_attribute WHERE attrelid = '{table}'::regclass
         AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    ));
    let selected: Vec<_> = columns
        .lines()
        .map(|column| {
            let value = values.iter().find(|(name, _)| *name == column);
            value.map_or(column, |(_, value)| *value)
        })
        .collect();
    let selected = selected.join(", ");
    format!("INSERT INTO reference_{table} SELECT {selected} FROM template_{table}")
}
