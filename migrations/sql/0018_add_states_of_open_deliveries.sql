-- no-transaction
-- Those of before 0014 that are not only created. In a statement of its own: the lock of 0014 would stop all others.
UPDATE deliveries SET state = (
    SELECT CASE
        WHEN pickup.state = 'failed' AND pickup.completed_at IS NULL THEN 'failed'
        WHEN dropoff.state = 'failed' AND dropoff.completed_at IS NULL THEN 'failed'
        WHEN dropoff.completed_at IS NOT NULL THEN 'dropped'
        WHEN dropoff.state = 'doing' THEN 'in_transit'
        WHEN pickup.completed_at IS NOT NULL THEN 'picked'
        WHEN pickup.state = 'doing' THEN 'started'
        WHEN dropoff.courier_id IS NOT NULL THEN 'assigned'
    END
    FROM tasks AS pickup
    JOIN tasks AS dropoff ON dropoff.store_id = pickup.store_id AND dropoff.delivery_id = pickup.delivery_id
    WHERE pickup.store_id = deliveries.store_id AND pickup.delivery_id = deliveries.id
        AND pickup.kind = 'pickup' AND dropoff.kind = 'dropoff'
) WHERE completed_at IS NULL AND cancelled_at IS NULL AND EXISTS (
    SELECT 1 FROM tasks WHERE tasks.store_id = deliveries.store_id AND tasks.delivery_id = deliveries.id
        AND (tasks.completed_at IS NOT NULL OR tasks.state IS NOT NULL OR tasks.courier_id IS NOT NULL)
);
