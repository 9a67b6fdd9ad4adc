//! A database for each test: a `SQLite` file, because `:memory:` is one database per connection,
//! or a database in the `PostgreSQL` cluster of the end-to-end tests.

#[path = "../../../tests/e2e/harness/postgres.rs"]
mod postgres_cluster;
#[path = "../../../tests/e2e/harness/postgres_programs.rs"]
mod postgres_programs;
#[path = "../../../tests/e2e/harness/prerequisites.rs"]
mod prerequisites;

use std::{sync::Arc, time::Duration};

use domain::{id::StoreId, store::Store};
use iso_currency::Currency;
use jiff::{Timestamp, tz::TimeZone};
use tempfile::TempDir;

use super::Storage;

/// A new `SQLite` database, deleted with the directory.
pub async fn sqlite() -> (TempDir, Arc<Storage>) {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(&directory).await;
    (directory, Arc::new(storage))
}

/// As [`sqlite`], with another timeout for writes.
pub async fn sqlite_with_write_timeout(write_timeout: Duration) -> (TempDir, Arc<Storage>) {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::connect_with(&url(&directory), write_timeout).await;
    (directory, Arc::new(storage.unwrap()))
}

/// A new `PostgreSQL` database; `None`, with a message on stderr, without a `PostgreSQL`
/// installation.
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
