-- no-transaction
-- Lists of tasks by state and the end of the window. How long before its end a window begins is in
-- classes, so that the windows that touch a day end within a short time after it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS tasks_by_end ON tasks (
    (CASE WHEN completed_at IS NOT NULL THEN 'done' WHEN cancelled_at IS NOT NULL THEN 'cancelled'
        ELSE COALESCE(state, 'todo') END),
    (CASE WHEN before - after <= 14400000000 THEN 0 WHEN before - after <= 172800000000 THEN 1
        WHEN before - after <= 1209600000000 THEN 2 ELSE 3 END),
    before, id
);
