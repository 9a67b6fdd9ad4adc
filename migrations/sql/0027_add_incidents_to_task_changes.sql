-- The incident that was reported or closed, if that is the change. Null if a program of an earlier version wrote it.
ALTER TABLE task_change_queue ADD COLUMN incident_id uuid;
ALTER TABLE task_changes ADD COLUMN incident_id uuid;
