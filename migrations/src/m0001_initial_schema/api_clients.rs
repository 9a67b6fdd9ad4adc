//! API clients (the OAuth 2.0 clients), the keys that sign their access tokens, the stored
//! responses to their requests, and secrets of the platform itself.

use sea_orm_migration::prelude::*;

use crate::columns::{
    bytes, id, index, instant, optional_id, optional_instant, optional_json, table, text,
};

pub(super) fn tables() -> Vec<TableCreateStatement> {
    vec![
        table(
            "api_clients",
            [
                id("id"),
                // Null for the platform's own programs, which belong to no store.
                optional_id("store_id"),
                text("display_name"),
                text("api_key"),
                bytes("secret_hash"),
                bytes("replaced_secrets"),
                text("scopes"),
                optional_json("default_address"),
                instant("created_at"),
                optional_instant("disabled_at"),
            ],
            &["id"],
        ),
        table(
            "signing_keys",
            [
                text("id"),
                bytes("encrypted_private_key"),
                instant("created_at"),
            ],
            &["id"],
        ),
        table(
            "platform_secrets",
            [text("name"), bytes("encrypted_secret")],
            &["name"],
        ),
        table(
            "idempotency_keys",
            [
                id("store_id"),
                id("api_client_id"),
                // The hash of the client's idempotency key and the operation.
                bytes("key_hash"),
                bytes("request_hash"),
                bytes("encrypted_response"),
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
