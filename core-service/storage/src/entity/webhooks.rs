//! Rows of webhooks, their receivers' hosts, their notifications, and attempts.

/// Rows of `webhooks`.
pub(crate) mod webhook {
    use sea_orm::entity::prelude::*;

    use super::super::instant::Instant;

    #[derive(Clone, Debug, DeriveEntityModel)]
    #[sea_orm(table_name = "webhooks")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub store_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub api_client_id: Uuid,
        pub event: String,
        pub url: String,
        /// The URL's host and port.
        pub host: String,
        pub encrypted_secret: Vec<u8>,
        /// Each prefixed with its length in two bytes, oldest first.
        pub encrypted_retired_secrets: Option<Vec<u8>>,
        pub overlap_ends_at: Option<Instant>,
        pub created_at: Instant,
        pub disabled_at: Option<Instant>,
        pub disabled_reason: Option<String>,
        /// The last disabled period; set when the webhook is enabled again.
        pub disabled_from: Option<Instant>,
        pub disabled_until: Option<Instant>,
        /// The position in the queue, see `notifications::queue`.
        pub next_due_at: Option<Instant>,
        pub receiver_health: Option<String>,
        pub is_proven: bool,
        pub failing_since: Option<Instant>,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Rows of `receiver_hosts`.
pub(crate) mod receiver_host {
    use sea_orm::entity::prelude::*;

    use super::super::instant::Instant;

    #[derive(Clone, Debug, DeriveEntityModel)]
    #[sea_orm(table_name = "receiver_hosts")]
    pub(crate) struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub store_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub host: String,
        /// By the lease clock.
        pub in_flight_until: Instant,
        pub failures: i64,
        pub failed_at: Instant,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub(crate) enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Rows of `notifications`.
pub(crate) mod notification {
    use sea_orm::entity::prelude::*;

    use super::super::instant::Instant;

    #[derive(Clone, Debug, DeriveEntityModel)]
    #[sea_orm(table_name = "notifications")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub store_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub event_id: Uuid,
        pub webhook_id: Uuid,
        pub event: String,
        pub delivery_id: Uuid,
        pub state: String,
        pub attempts: i64,
        /// The number of attempts made before the retry schedule last started.
        pub attempts_at_resend: i64,
        pub due_at: Instant,
        pub lease_token: Option<Uuid>,
        pub lease_expires_at: Option<Instant>,
        pub created_at: Instant,
        pub finished_at: Option<Instant>,
        /// The W3C header of the call that caused the event.
        pub traceparent: Option<String>,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Rows of `attempts`.
pub(crate) mod attempt {
    use sea_orm::entity::prelude::*;

    use super::super::instant::Instant;

    #[derive(Clone, Debug, DeriveEntityModel)]
    #[sea_orm(table_name = "attempts")]
    pub(crate) struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub store_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub notification_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub number: i64,
        pub failure: Option<String>,
        pub status: Option<i64>,
        /// Microseconds.
        pub duration: i64,
        pub response_body: String,
        pub recorded_at: Instant,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub(crate) enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}
