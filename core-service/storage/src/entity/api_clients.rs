//! Rows of API clients, their idempotency keys, the keys that sign their access tokens, and secrets
//! of the platform itself.

/// Rows of `api_clients`.
pub(crate) mod api_client {
    use sea_orm::entity::prelude::*;

    use super::super::{instant::Instant, json::AddressJson};

    #[derive(Clone, Debug, DeriveEntityModel)]
    #[sea_orm(table_name = "api_clients")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub store_id: Option<Uuid>,
        pub display_name: String,
        pub api_key: String,
        pub secret_hash: Vec<u8>,
        /// Each the hash (32 bytes) and the expiry (8 bytes), oldest first.
        pub replaced_secrets: Vec<u8>,
        pub scopes: String,
        #[sea_orm(column_type = "JsonBinary", nullable)]
        pub default_address: Option<AddressJson>,
        pub created_at: Instant,
        pub disabled_at: Option<Instant>,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Rows of `idempotency_keys`.
pub(crate) mod idempotency_key {
    use sea_orm::entity::prelude::*;

    use super::super::instant::Instant;

    #[derive(Clone, Debug, DeriveEntityModel)]
    #[sea_orm(table_name = "idempotency_keys")]
    pub(crate) struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub store_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub api_client_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub key_hash: Vec<u8>,
        pub request_hash: Vec<u8>,
        pub encrypted_response: Vec<u8>,
        pub created_at: Instant,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub(crate) enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Rows of `signing_keys`.
pub(crate) mod signing_key {
    use sea_orm::entity::prelude::*;

    use super::super::instant::Instant;

    #[derive(Clone, Debug, DeriveEntityModel)]
    #[sea_orm(table_name = "signing_keys")]
    pub(crate) struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: String,
        pub encrypted_private_key: Vec<u8>,
        pub created_at: Instant,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub(crate) enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Rows of `platform_secrets`.
pub(crate) mod platform_secret {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, DeriveEntityModel)]
    #[sea_orm(table_name = "platform_secrets")]
    pub(crate) struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub name: String,
        pub encrypted_secret: Vec<u8>,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub(crate) enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}
