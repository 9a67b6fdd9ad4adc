-- no-transaction
-- Lists of deliveries by state. A core of an earlier version completes a delivery without changing its state.
CREATE INDEX CONCURRENTLY IF NOT EXISTS deliveries_by_state ON deliveries (
    store_id, (CASE WHEN completed_at IS NOT NULL THEN 'completed' ELSE state END), created_at, id
) WHERE completed_at IS NOT NULL OR state IS NOT NULL;
