-- no-transaction
-- Deliveries that were created after the end of their dropoff's window, which are few. Lists of those that end before an
-- instant read these, and of the others those created before the instant.
CREATE INDEX CONCURRENTLY IF NOT EXISTS deliveries_created_late ON deliveries (store_id, created_at, id)
    WHERE dropoff_before <= created_at;
