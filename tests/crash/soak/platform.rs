//! What differs between the databases: the processes, their faults and their storage.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
    time::Instant,
};

use super::{
    tables,
    traffic::{Access, Traffic},
};
use crate::{
    all_in_one::AllInOne,
    cluster::{Cluster, credentials},
    counting_receiver::CountingReceiver,
    fault::Fault,
    server::Server,
};

/// The number of successful requests that end a fault.
const SUCCESSES: u64 = 5;

/// Locks the database for writes until its standard input is closed.
const LOCK: &str = "import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
database.execute('BEGIN IMMEDIATE')
print('locked', flush=True)
sys.stdin.read()";

/// The faults of the cluster, in turn. `None`: the receiver does not respond for a while. The first
/// process of each kind is never killed.
const FAULTS: [Option<Fault>; 7] = [
    Some(Fault::Gateway(1)),
    Some(Fault::Core(1)),
    Some(Fault::Dispatcher(1)),
    None,
    Some(Fault::Postgres),
    Some(Fault::PostgresImmediately),
    Some(Fault::Connections),
];

pub(super) trait Platform {
    const NAME: &str;
    /// The name of the CSV file with the samples of the processes and the storage.
    const SAMPLES_FILE: &str;
    const KINDS_OF_FAULTS: u32;
    /// The processes whose growth is asserted.
    const NEVER_KILLED: &[&str];
    /// The columns of each table whose growth is limited.
    const LIMITED_COLUMNS: &[&str];

    fn access(&self) -> Access;

    fn processes(&self) -> Vec<&Server>;

    /// The result of a statement of one row and one column.
    fn query(&self, statement: &str) -> String;

    /// Names and values of what the database occupies, and of the work of autovacuum.
    fn storage(&self) -> Vec<(String, u64)>;

    /// Injects the next fault, of which there were `number` before, and repairs it; returns its name.
    /// The caller lets a receiver respond again.
    async fn inject(
        &mut self,
        number: u32,
        is_after_first_quarter: bool,
        traffic: &Traffic,
        receiver: &CountingReceiver,
    ) -> String;
}

/// The process is killed at least once, and not after the first quarter of a run unless that is the
/// first fault, so that its growth is seen afterwards.
impl Platform for AllInOne {
    const NAME: &str = "SQLite";
    const SAMPLES_FILE: &str = "soak-sqlite.csv";
    const KINDS_OF_FAULTS: u32 = 3;
    const NEVER_KILLED: &[&str] = &["delivery"];
    const LIMITED_COLUMNS: &[&str] = &["rows"];

    fn access(&self) -> Access {
        let ready = self.ready();
        let url = |name: &str| vec![ready[name].as_str().unwrap().to_owned()];
        Access {
            base_urls: url("base_url"),
            core_urls: url("core_url"),
            shop: credentials(&ready["demo_client"]),
            operator: credentials(&ready["operator_client"]),
        }
    }

    fn processes(&self) -> Vec<&Server> {
        vec![&self.server]
    }

    fn query(&self, statement: &str) -> String {
        self.sql(statement)
    }

    fn storage(&self) -> Vec<(String, u64)> {
        let file = |(name, file): (&str, &str)| {
            let metadata = std::fs::metadata(self.data_dir.join(file));
            // The write-ahead log is absent after a clean start.
            let bytes = metadata.map_or(0, |metadata| metadata.len());
            (format!("{name} bytes"), bytes)
        };
        [
            ("database", "delivery.sqlite"),
            ("write-ahead log", "delivery.sqlite-wal"),
        ]
        .map(file)
        .to_vec()
    }

    async fn inject(
        &mut self,
        number: u32,
        is_after_first_quarter: bool,
        traffic: &Traffic,
        receiver: &CountingReceiver,
    ) -> String {
        let name = if !is_after_first_quarter || number == 0 {
            self.server.kill();
            self.server.start().await;
            "kill"
        } else if number.is_multiple_of(2) {
            receiver.set_responding(false);
            "receiver hangs"
        } else {
            let database = self.data_dir.join("delivery.sqlite");
            let mut lock = self
                .command(&["python3", "-c", LOCK, database.to_str().unwrap()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut locked = String::new();
            let mut output = BufReader::new(lock.stdout.take().unwrap());
            output.read_line(&mut locked).unwrap();
            assert_eq!(locked, "locked\n");
            // Reads succeed.
            traffic.wait_for_successes(SUCCESSES).await;
            drop(lock.stdin.take());
            assert!(lock.wait().unwrap().success());
            "database locked"
        };
        traffic.wait_for_successes(SUCCESSES).await;
        name.to_owned()
    }
}

impl Platform for Cluster {
    const NAME: &str = "PostgreSQL";
    const SAMPLES_FILE: &str = "soak-postgresql.csv";
    const KINDS_OF_FAULTS: u32 = 7;
    const NEVER_KILLED: &[&str] = &["core 0", "gateway 0", "dispatcher 0"];
    const LIMITED_COLUMNS: &[&str] = &["rows", "bytes"];

    fn access(&self) -> Access {
        Access {
            base_urls: self.gateway_urls.to_vec(),
            core_urls: self.core_urls.to_vec(),
            shop: self.shop_client.clone(),
            operator: self.operator_client.clone(),
        }
    }

    fn processes(&self) -> Vec<&Server> {
        let servers = self.cores.iter().chain(&self.gateways);
        servers.chain(&self.dispatchers).collect()
    }

    fn query(&self, statement: &str) -> String {
        self.postgres.query(statement)
    }

    fn storage(&self) -> Vec<(String, u64)> {
        let of_table = |table: &str| {
            format!(
                "(SELECT pg_total_relation_size(relid) || ' ' || n_dead_tup || ' ' || \
                 autovacuum_count FROM pg_stat_user_tables WHERE relname = '{table}')"
            )
        };
        let columns: Vec<_> = tables().map(of_table).collect();
        let values = self.query(&format!("SELECT {}", columns.join(" || ' ' || ")));
        let names = tables().flat_map(|table| {
            ["bytes", "dead tuples", "autovacuums"].map(|column| format!("{table} {column}"))
        });
        let values = values.split(' ').map(|value| value.parse().unwrap());
        names.zip(values).collect()
    }

    async fn inject(
        &mut self,
        number: u32,
        _: bool,
        traffic: &Traffic,
        receiver: &CountingReceiver,
    ) -> String {
        let served = async |_: Instant| traffic.wait_for_successes(SUCCESSES).await;
        let kind = usize::try_from(number).unwrap() % FAULTS.len();
        if let Some(fault) = FAULTS[kind] {
            fault.inject(self, served).await;
            // A comma would separate columns.
            format!("{fault:?}").replace(',', " ")
        } else {
            receiver.set_responding(false);
            "receiver hangs".to_owned()
        }
    }
}
