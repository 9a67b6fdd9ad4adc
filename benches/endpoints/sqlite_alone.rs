//! SQLite alone: reads pages of deliveries or inserts the rows of creates, as fast as SQLite can. Nothing is
//! converted, encoded or sent.

use std::{
    hint::black_box,
    num::NonZero,
    thread,
    time::{Duration, Instant},
};

use rusqlite::{Connection, Row, TransactionBehavior, params_from_iter, types::Value};
use tempfile::TempDir;
use uuid::Uuid;

use crate::{load::Sample, platform::Platform};

/// How many deliveries the platform reads for a page of 30: one more tells whether another page follows.
const PAGE: usize = 31;

/// How many creates a commit has. A statement of the platform inserts as many at most; its commits have 12 on
/// average with 32 connections (`delivery_group_commit_writes`).
const BATCH: usize = 16;

/// The number of creates between two checkpoints, as in the platform.
const CREATES_PER_CHECKPOINT: usize = 512;

/// A copy of a platform's file.
pub(crate) struct SqliteAlone {
    directory: TempDir,
}

impl SqliteAlone {
    pub(crate) fn copy(platform: &Platform) -> Self {
        let alone = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        let original = Connection::open(platform.sqlite_file()).unwrap();
        original.execute("VACUUM INTO ?", [alone.path()]).unwrap();
        let copy = alone.open();
        copy.pragma_update(None, "journal_mode", "WAL").unwrap();
        alone
    }

    fn path(&self) -> String {
        let file = self.directory.path().join("copy.sqlite");
        file.to_str().unwrap().to_owned()
    }

    /// A connection with the platform's settings.
    fn open(&self) -> Connection {
        let connection = Connection::open(self.path()).unwrap();
        for (name, value) in [
            ("synchronous", "FULL"),
            ("cache_size", "-16000"),
            ("secure_delete", "ON"),
            ("wal_autocheckpoint", "0"),
        ] {
            connection.pragma_update(None, name, value).unwrap();
        }
        connection
    }

    /// Reads the newest page with a connection for each processor.
    pub(crate) fn pages(&self, duration: Duration) -> Sample {
        let readers = thread::available_parallelism().map_or(1, NonZero::get);
        let started = Instant::now();
        let pages: usize = thread::scope(|scope| {
            let readers: Vec<_> = (0..readers)
                .map(|_| scope.spawn(|| self.read_pages(started, duration)))
                .collect();
            let pages = readers.into_iter().map(|reader| reader.join().unwrap());
            pages.sum()
        });
        sample(pages, started)
    }

    fn read_pages(&self, started: Instant, duration: Duration) -> usize {
        let connection = self.open();
        let sql = format!(
            "SELECT * FROM (SELECT * FROM deliveries WHERE store_id = ?
                 ORDER BY created_at DESC, id DESC LIMIT {PAGE}) AS delivery
             LEFT JOIN tasks ON tasks.store_id = delivery.store_id
                 AND tasks.delivery_id = delivery.id"
        );
        let mut statement = connection.prepare(&sql).unwrap();
        let columns = statement.column_count();
        let select = "SELECT store_id FROM deliveries LIMIT 1";
        let store_id: Value = connection.query_row(select, [], |row| row.get(0)).unwrap();
        let mut pages = 0;
        while started.elapsed() < duration {
            let mut rows = statement.query([&store_id]).unwrap();
            let mut count = 0;
            while let Some(row) = rows.next().unwrap() {
                for column in 0..columns {
                    black_box(row.get_ref(column).unwrap());
                }
                count += 1;
            }
            assert_eq!(count, 2 * PAGE, "two tasks for each delivery");
            pages += 1;
        }
        pages
    }

    /// Inserts copies of a delivery and its tasks, newer than all others, [`BATCH`] deliveries a commit.
    pub(crate) fn creates(&self, duration: Duration) -> Sample {
        let mut connection = self.open();
        let select = "SELECT id FROM deliveries LIMIT 1";
        let id: Value = connection.query_row(select, [], |row| row.get(0)).unwrap();
        let [delivery, tasks] = [
            "SELECT * FROM deliveries WHERE id = ?",
            "SELECT * FROM tasks WHERE delivery_id = ?",
        ]
        .map(|select| Template::read(&connection, select, &id));
        let [insert_deliveries, insert_tasks] = [
            ("deliveries", BATCH, &delivery),
            ("tasks", 2 * BATCH, &tasks),
        ]
        .map(|(table, rows, template)| {
            let row = format!("({})", vec!["?"; template.columns.len()].join(", "));
            let rows = vec![row; rows].join(", ");
            format!("INSERT INTO {table} VALUES {rows}")
        });
        let newest = "SELECT max(created_at) FROM deliveries";
        let newest = connection.query_row(newest, [], |row| row.get(0));
        let mut created_at: i64 = newest.unwrap();
        let started = Instant::now();
        let mut creates = 0;
        while started.elapsed() < duration {
            let (mut delivery_rows, mut task_rows) = (Vec::new(), Vec::new());
            for _ in 0..BATCH {
                let id = new_id();
                created_at += 1;
                let now = Value::Integer(created_at);
                delivery_rows.extend(delivery.rows_with(&[("id", &id), ("created_at", &now)]));
                let values = [
                    ("delivery_id", &id),
                    ("created_at", &now),
                    ("updated_at", &now),
                ];
                task_rows.extend(tasks.rows_with(&values));
            }
            let transaction = connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .unwrap();
            for (insert, values) in [
                (&insert_deliveries, delivery_rows),
                (&insert_tasks, task_rows),
            ] {
                let mut statement = transaction.prepare_cached(insert).unwrap();
                statement.execute(params_from_iter(values)).unwrap();
            }
            transaction.commit().unwrap();
            creates += BATCH;
            if creates % CREATES_PER_CHECKPOINT == 0 {
                let checkpoint = "PRAGMA wal_checkpoint(PASSIVE)";
                connection.query_row(checkpoint, [], |_| Ok(())).unwrap();
            }
        }
        sample(creates, started)
    }
}

/// Rows of a table to insert copies of.
struct Template {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl Template {
    /// The rows for an id.
    fn read(connection: &Connection, select: &str, id: &Value) -> Self {
        let mut statement = connection.prepare(select).unwrap();
        let columns: Vec<_> = statement
            .column_names()
            .into_iter()
            .map(str::to_owned)
            .collect();
        let values = |row: &Row<'_>| (0..columns.len()).map(|column| row.get(column)).collect();
        let rows = statement.query_map([id], values).unwrap();
        let rows = rows.collect::<Result<_, _>>().unwrap();
        Self { columns, rows }
    }

    /// The values of the rows, with others in some columns, and a new id unless it is among them.
    fn rows_with(&self, others: &[(&str, &Value)]) -> Vec<Value> {
        let mut values = Vec::with_capacity(self.rows.len() * self.columns.len());
        for row in &self.rows {
            for (column, template) in self.columns.iter().zip(row) {
                let other = others.iter().find(|(name, _)| name == column);
                values.push(match other {
                    Some((_, value)) => (*value).clone(),
                    None if column == "id" => new_id(),
                    None => template.clone(),
                });
            }
        }
        values
    }
}

fn new_id() -> Value {
    Value::Blob(Uuid::now_v7().into_bytes().into())
}

#[expect(clippy::cast_precision_loss, reason = "rounded for display")]
fn sample(count: usize, started: Instant) -> Sample {
    let requests = count as f64;
    Sample {
        requests,
        rate: requests / started.elapsed().as_secs_f64(),
        p99: None,
    }
}
