-- The state of a delivery, for the filter of lists: null if it is created, completed or cancelled. A created delivery is
-- in no index of it.
ALTER TABLE deliveries ADD COLUMN state text;
-- How a client sees the status of tasks: null for one that a program of an earlier version created.
ALTER TABLE api_clients ADD COLUMN task_status text;
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
) WHERE completed_at IS NULL AND cancelled_at IS NULL;
