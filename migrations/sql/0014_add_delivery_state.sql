-- The state of a delivery, for the filter of lists: null if it is created, completed or cancelled. A created delivery is
-- in no index of it.
ALTER TABLE deliveries ADD COLUMN state text;
-- How a client sees the status of tasks: null for one that a program of an earlier version created.
ALTER TABLE api_clients ADD COLUMN task_status text;
