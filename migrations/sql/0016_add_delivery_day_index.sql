-- no-transaction
-- By the end of the dropoff's window: lists and searches of the deliveries of all stores, and retention.
CREATE INDEX CONCURRENTLY IF NOT EXISTS deliveries_by_day ON deliveries (dropoff_before, id) WHERE erased_at IS NULL;
