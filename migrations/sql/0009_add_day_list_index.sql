-- no-transaction
-- Lists of tasks of all couriers on a day, by the end of the window.
CREATE INDEX CONCURRENTLY IF NOT EXISTS tasks_of_days ON tasks (list_day, before, id) WHERE courier_id IS NOT NULL;
