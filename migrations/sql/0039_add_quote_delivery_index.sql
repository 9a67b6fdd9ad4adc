-- no-transaction
-- The quote that a delivery used, which is removed with it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS retail_price_uses_by_delivery ON retail_price_uses (store_id, delivery_id);
