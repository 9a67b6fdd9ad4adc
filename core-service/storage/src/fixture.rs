//! A database of its own for each test: a file, because `:memory:` is one a connection; or one in
//! the `PostgreSQL` cluster that the end-to-end tests would make.

#[path = "../../../tests/e2e/harness/postgres.rs"]
mod postgres_cluster;
#[path = "../../../tests/e2e/harness/postgres_programs.rs"]
mod postgres_programs;

use std::{sync::Arc, time::Duration};

use domain::{id::StoreId, store::Store};
use iso_currency::Currency;
use jiff::{Timestamp, tz::TimeZone};
use tempfile::TempDir;

use super::Storage;

/// A new `SQLite` database; it goes with the directory.
pub async fn sqlite() -> (TempDir, Arc<Storage>) {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(&directory).await;
    (directory, Arc::new(storage))
}

/// As [`sqlite`], where a write waits for so long only.
pub async fn impatient_sqlite(patience: Duration) -> (TempDir, Arc<Storage>) {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::connect_with(&url(&directory), patience).await;
    (directory, Arc::new(storage.unwrap()))
}

/// A new `PostgreSQL` database; `None`, said on stderr, on a machine without `PostgreSQL`.
pub async fn postgres() -> Option<Arc<Storage>> {
    let url = postgres_cluster::create_database()?;
    Some(Arc::new(Storage::connect(&url).await.unwrap()))
}

pub async fn open(directory: &TempDir) -> Storage {
    Storage::connect(&url(directory)).await.unwrap()
}

fn url(directory: &TempDir) -> String {
    let file = directory.path().join("delivery.sqlite");
    format!("sqlite://{}?mode=rwc", file.display())
}

pub fn store(name: &str) -> Store {
    Store {
        id: StoreId::new(),
        display_name: name.to_owned(),
        time_zone: TimeZone::get("Europe/Paris").unwrap(),
        currency: Currency::EUR,
        country: "FR".parse().unwrap(),
        default_address: None,
        service_area: None,
        created_at: Timestamp::UNIX_EPOCH,
    }
}
