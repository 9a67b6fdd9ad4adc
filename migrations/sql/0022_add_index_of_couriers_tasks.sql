-- no-transaction
-- The overdue tasks of a courier. A task without a courier costs nothing.
CREATE INDEX CONCURRENTLY IF NOT EXISTS tasks_of_couriers ON tasks (courier_id, before, id)
    WHERE courier_id IS NOT NULL AND completed_at IS NULL AND cancelled_at IS NULL;
