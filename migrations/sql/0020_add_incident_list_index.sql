-- no-transaction
-- Lists of tasks with open incidents: of those that are neither done nor cancelled, and of the others of a day.
CREATE INDEX CONCURRENTLY IF NOT EXISTS tasks_with_incidents ON tasks (
    (CASE WHEN completed_at IS NULL AND cancelled_at IS NULL THEN 'open' ELSE COALESCE(list_day, 'none') END),
    before, id
) WHERE open_incidents IS NOT NULL;
