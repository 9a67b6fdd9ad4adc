-- no-transaction
-- Erased deliveries, by the later of their creation and the end of their dropoff: they are removed oldest first. One that is
-- not erased costs nothing.
CREATE INDEX CONCURRENTLY IF NOT EXISTS deliveries_erased ON deliveries (
    (CASE WHEN created_at > dropoff_before THEN created_at ELSE dropoff_before END)
) WHERE erased_at IS NOT NULL;
