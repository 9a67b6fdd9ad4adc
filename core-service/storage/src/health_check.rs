//! Checks whether the database responds.

use sea_orm::{ConnectionTrait as _, DatabaseConnection};

use super::Error;

/// A query on the connections of a storage. Fails after the storage is closed.
#[derive(Clone, Debug)]
pub struct HealthCheck(DatabaseConnection);

impl HealthCheck {
    pub(super) fn new(reader: DatabaseConnection) -> Self {
        Self(reader)
    }

    pub async fn run(&self) -> Result<(), Error> {
        self.0.execute_unprepared("SELECT 1").await?;
        Ok(())
    }
}
