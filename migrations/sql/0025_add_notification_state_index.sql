-- no-transaction
-- A webhook's notifications in the state that API clients see, in the order of lists: one index entry for each that is
-- not delivered.
CREATE INDEX CONCURRENTLY IF NOT EXISTS notifications_by_state ON notifications (
    store_id, webhook_id,
    (CASE WHEN state NOT IN ('pending', 'leased') THEN state
        WHEN attempts > attempts_at_resend THEN 'failed' ELSE 'pending' END),
    created_at, id
) WHERE state <> 'delivered';
