//! Whether the database answers.

use sea_orm::{ConnectionTrait as _, DatabaseConnection};

use super::Error;

/// Outlives the storage it was taken from, and then feels nothing.
#[derive(Clone, Debug)]
pub struct Pulse(DatabaseConnection);

impl Pulse {
    pub(super) fn new(reader: DatabaseConnection) -> Self {
        Self(reader)
    }

    /// Asks the database for nothing.
    pub async fn feel(&self) -> Result<(), Error> {
        self.0.execute_unprepared("SELECT 1").await?;
        Ok(())
    }
}
