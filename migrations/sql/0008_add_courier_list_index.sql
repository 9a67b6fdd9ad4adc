-- no-transaction
-- The tasks of a courier's list of a day. A task without a courier costs nothing.
CREATE INDEX CONCURRENTLY IF NOT EXISTS tasks_of_lists ON tasks (list_day, courier_id) WHERE courier_id IS NOT NULL;
