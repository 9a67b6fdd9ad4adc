//! Rows of API clients, their idempotency keys, the keys that sign their access tokens, and secrets
//! of the platform itself.

table! {
    /// Rows of `api_clients`.
    mod api_client = "api_clients";
    key(id: Uuid);
    store_id: Option<Uuid>,
    display_name: String,
    api_key: String,
    secret_hash: Vec<u8>,
    /// Each the hash (32 bytes) and the expiry (8 bytes), oldest first.
    replaced_secrets: Vec<u8>,
    scopes: String,
    default_address: Option<AddressJson>,
    created_at: Instant,
    disabled_at: Option<Instant>,
}

table! {
    /// Rows of `idempotency_keys`.
    mod idempotency_key = "idempotency_keys";
    key(store_id: Uuid, api_client_id: Uuid, key_hash: Vec<u8>);
    request_hash: Vec<u8>,
    encrypted_response: Vec<u8>,
    created_at: Instant,
}

table! {
    /// Rows of `signing_keys`.
    mod signing_key = "signing_keys";
    key(id: String);
    encrypted_private_key: Vec<u8>,
    created_at: Instant,
}

table! {
    /// Rows of `platform_secrets`.
    mod platform_secret = "platform_secrets";
    key(name: String);
    encrypted_secret: Vec<u8>,
}
