//! The database. Only this crate and `migrations` use sea-orm. It connects, migrates, runs the
//! writes, and has a file per aggregate. Lookups take the store as a parameter, except those that
//! the invariants in `docs/architecture.md` list.

pub mod api_clients;
pub mod audit_events;
pub mod backup;
pub mod courier_lists;
pub mod couriers;
pub mod created_bytes;
pub mod deliveries;
pub mod delivery_insertion;
pub mod delivery_pages;
pub mod delivery_removal;
pub mod delivery_search;
mod entity;
pub mod events;
pub mod idempotency_keys;
pub mod images;
pub mod incidents;
pub mod late_reports;
pub mod notifications;
pub mod pages;
pub mod personal_data;
pub mod platform_secrets;
pub mod platform_state;
pub mod price_lists;
pub mod retail_prices;
pub mod retention_lease;
pub mod signing_keys;
pub mod slot_bookings;
pub mod stores;
pub mod task_changes;
pub mod task_events;
pub mod task_lists;
pub mod tasks;
pub mod time_slots;
pub mod verification;
pub mod webhook_notifications;
pub mod webhooks;
pub mod zones;

mod changes;
mod connect;
mod connections;
mod error;
#[cfg(any(test, feature = "fixture"))]
#[expect(
    clippy::unwrap_used,
    reason = "a fixture that fails must fail its test"
)]
pub mod fixture;
mod group_commit;
mod health_check;
mod inspection;
mod lease_clock;
mod metrics;
mod rows;
mod schema;
mod session;
mod shared_reads;
mod storage;

pub use migrations::{DatabaseConfig, DatabaseServerVerification, RefusedUrl};
pub use sea_orm::ConnectionTrait;

pub use self::{
    changes::Changes,
    connections::Connections,
    error::{Error, WriteError},
    health_check::HealthCheck,
    inspection::Inspection,
    schema::{NOT_BOOTSTRAPPED, migrate_database},
    session::{Session, Work},
    storage::{DEFAULT_DATABASE_CONNECTIONS, Storage},
};

/// What the files of the aggregates use to build statements and run them.
mod prelude {
    pub(crate) use jiff::Timestamp;
    pub(crate) use sea_orm::{
        ActiveValue::{NotSet, Set},
        ColumnTrait, Condition, ConnectionTrait, DbBackend, EntityTrait, QueryFilter, QueryOrder,
        QuerySelect, QueryTrait, Select,
        sea_query::{
            CaseStatement, Expr, LockBehavior, LockType, OnConflict, Query, SelectStatement,
            SimpleExpr,
        },
    };
    pub(crate) use uuid::Uuid;

    pub(crate) use crate::{
        Error,
        rows::{self, padded},
    };
}
