//! Compares the endpoints of platforms with few and with many deliveries, measured interleaved. SQL
//! inserts the deliveries as copies of one, and webhooks of many stores.

use rusqlite::Connection;

use crate::{
    comparison::{compare, new_database},
    platform::Platform,
    postgres::Postgres,
    requests::{create, create_webhook},
};

/// The numbers of deliveries, if the command line has none.
const SIZES: [u64; 2] = [10_000, 1_000_000];
const STORES: u64 = 1_000;
const WEBHOOKS: u64 = 10_000;
/// How many deliveries a statement inserts.
const CHUNK: u64 = 100_000;

/// Compares platforms of these sizes with the first.
pub(crate) async fn measure(postgres: &Postgres, sizes: &[u64]) {
    let sizes = if sizes.is_empty() { &SIZES } else { sizes };
    for database in ["SQLite", "PostgreSQL"] {
        let mut platforms = Vec::new();
        for size in sizes {
            let platform = filled(database, *size, postgres).await;
            platforms.push((format!("{size} deliveries"), platform));
        }
        compare(database, &platforms).await;
    }
}

/// A platform with `size` deliveries.
async fn filled(database: &'static str, size: u64, postgres: &Postgres) -> Platform {
    let name = format!("growth_{size}");
    let url = (database == "PostgreSQL").then(|| new_database(postgres, &name));
    let mut platform = Platform::start(database, url.as_deref()).await;
    platform.fetch(create(&platform.authorization)).await;
    platform
        .fetch(create_webhook(&platform.authorization))
        .await;
    platform.stop().await;
    let target = match url {
        Some(_) => Target::Postgres(postgres, name),
        None => Target::Sqlite(Connection::open(platform.sqlite_file()).unwrap()),
    };
    target.fill(size);
    platform.start_again().await;
    platform
}

enum Target<'a> {
    Postgres(&'a Postgres, String),
    Sqlite(Connection),
}

impl Target<'_> {
    fn fill(&self, size: u64) {
        if let Self::Sqlite(_) = self {
            self.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -500000");
        }
        for table in ["deliveries", "tasks", "stores", "webhooks"] {
            self.execute(&format!(
                "CREATE TABLE template_{table} AS SELECT * FROM {table}"
            ));
        }
        let store = |number: &str| self.id(&format!("{number} % {STORES}"), 1);
        let others = [("id", self.id("n", 1))];
        self.insert("stores", &others, (1, STORES));
        let webhooks = [("id", self.id("n", 1)), ("store_id", store("n"))];
        self.insert("webhooks", &webhooks, (1, WEBHOOKS));
        // One in a thousand belongs to the store that is measured.
        let measured = format!(
            "CASE WHEN n % {STORES} = 0 THEN store_id ELSE {} END",
            store("n")
        );
        let past = |column| (column, format!("{column} - {size} + n - 1"));
        let mut next = 1;
        while next <= size {
            let last = size.min(next + CHUNK - 1);
            eprintln!("filling: {next} of {size}");
            let delivery = [
                ("id", self.id("n", 1)),
                ("store_id", measured.clone()),
                past("created_at"),
                ("external_reference", "NULL".to_owned()),
            ];
            self.insert("deliveries", &delivery, (next, last));
            let task = format!(
                "CASE WHEN kind = 'pickup' THEN {} ELSE {} END",
                self.id("n", 2),
                self.id("n", 3)
            );
            let task = [
                ("id", task),
                ("store_id", measured.clone()),
                ("delivery_id", self.id("n", 1)),
                past("created_at"),
            ];
            self.insert("tasks", &task, (next, last));
            next = last + 1;
        }
        for table in ["deliveries", "tasks", "stores", "webhooks"] {
            self.execute(&format!("DROP TABLE template_{table}"));
        }
        match self {
            // As autovacuum does sooner or later.
            Self::Postgres(..) => self.execute("VACUUM ANALYZE"),
            Self::Sqlite(_) => self.execute("PRAGMA wal_checkpoint(TRUNCATE)"),
        }
    }

    /// An id made of a number. Such ids sort by their numbers, as those of the platform by creation.
    fn id(&self, number: &str, kind: u8) -> String {
        match self {
            Self::Postgres(..) => {
                format!("(lpad(to_hex(({number})::bigint), 16, '0') || '{kind:016x}')::uuid")
            }
            Self::Sqlite(_) => format!("unhex(printf('%016x{kind:016x}', {number}))"),
        }
    }

    /// Copies the rows of a template for each number of a range, with other values in some columns.
    fn insert(&self, table: &str, values: &[(&str, String)], (first, last): (u64, u64)) {
        let columns = self.columns(table);
        let selected = columns.iter().map(|column| {
            let value = values.iter().find(|(name, _)| name == column);
            value.map_or_else(|| format!("\"{column}\""), |(_, value)| value.clone())
        });
        let selected = selected.collect::<Vec<_>>().join(", ");
        let series = match self {
            Self::Postgres(..) => format!("generate_series({first}, {last}) AS n"),
            Self::Sqlite(_) => format!(
                "(WITH RECURSIVE series(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM series
                  WHERE n < {last}) SELECT n FROM series)"
            ),
        };
        self.execute(&format!(
            "INSERT INTO {table} SELECT {selected} FROM {series}, template_{table}"
        ));
    }

    fn columns(&self, table: &str) -> Vec<String> {
        match self {
            Self::Postgres(postgres, database) => {
                let select = format!(
                    "SELECT attname FROM pg_attribute WHERE attrelid = '{table}'::regclass
                     AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
                );
                let columns = psql(postgres, database, &select);
                columns.lines().map(str::to_owned).collect()
            }
            Self::Sqlite(connection) => {
                let select = format!("SELECT name FROM pragma_table_info('{table}') ORDER BY cid");
                let mut select = connection.prepare(&select).unwrap();
                let columns = select.query_map([], |row| row.get(0)).unwrap();
                columns.map(Result::unwrap).collect()
            }
        }
    }

    fn execute(&self, sql: &str) {
        match self {
            Self::Postgres(postgres, database) => {
                psql(postgres, database, sql);
            }
            Self::Sqlite(connection) => connection.execute_batch(sql).unwrap(),
        }
    }
}

fn psql(postgres: &Postgres, database: &str, sql: &str) -> String {
    let mut psql = postgres.program("psql");
    psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"]);
    let output = psql.args(["--dbname", database, "--command", sql]).output();
    let output = output.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "psql: {errors}");
    String::from_utf8(output.stdout).unwrap()
}
