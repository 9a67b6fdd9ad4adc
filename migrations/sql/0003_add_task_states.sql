-- `state` is null for a task that is to be done, done or cancelled: `completed_at` and `cancelled_at` say which. The
-- columns are null until a program of this version or a later one changes the task.
ALTER TABLE tasks ADD COLUMN state text;
ALTER TABLE tasks ADD COLUMN state_since bigint;
ALTER TABLE tasks ADD COLUMN state_set_by text;
ALTER TABLE tasks ADD COLUMN failure_reason text;
