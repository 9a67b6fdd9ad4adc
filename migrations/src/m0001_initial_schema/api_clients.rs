//! API clients (the OAuth 2.0 clients), the keys that sign their access tokens, the stored
//! responses to their requests, and secrets of the platform itself.

use sea_orm_migration::{
    prelude::*,
    schema::{blob, json_binary_null, text, uuid, uuid_null},
};

use crate::columns::{index, instant, optional_instant, table};

pub(super) fn tables() -> Vec<TableCreateStatement> {
    vec![
        table(
            "api_clients",
            [
                uuid("id"),
                // Null for the platform's own programs, which belong to no store.
                uuid_null("store_id"),
                text("display_name"),
                text("api_key"),
                blob("secret_hash"),
                blob("replaced_secrets"),
                text("scopes"),
                json_binary_null("default_address"),
                instant("created_at"),
                optional_instant("disabled_at"),
            ],
            &["id"],
        ),
        table(
            "signing_keys",
            [
                text("id"),
                blob("encrypted_private_key"),
                instant("created_at"),
            ],
            &["id"],
        ),
        table(
            "platform_secrets",
            [text("name"), blob("encrypted_secret")],
            &["name"],
        ),
        table(
            "idempotency_keys",
            [
                uuid("store_id"),
                uuid("api_client_id"),
                // The hash of the client's idempotency key and the operation.
                blob("key_hash"),
                blob("request_hash"),
                blob("encrypted_response"),
                instant("created_at"),
            ],
            &["store_id", "api_client_id", "key_hash"],
        ),
    ]
}

pub(super) fn indexes() -> Vec<IndexCreateStatement> {
    vec![
        index("api_clients_by_api_key", "api_clients", &["api_key"])
            .unique()
            .take(),
        // Expired keys are deleted oldest first.
        index(
            "idempotency_keys_by_creation",
            "idempotency_keys",
            &["created_at"],
        ),
    ]
}
