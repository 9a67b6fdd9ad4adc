-- Whether the delivery is new: with its place in the log, it gets its event `delivery.created`. Null if it is not, or if
-- a program of an earlier version has created it.
ALTER TABLE task_change_queue ADD COLUMN is_creation boolean;
