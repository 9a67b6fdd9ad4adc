-- no-transaction
-- The stored responses with a delivery's personal data, which are erased with it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idempotency_keys_by_delivery ON idempotency_keys (
    store_id, delivery_id, api_client_id, key_hash
);
