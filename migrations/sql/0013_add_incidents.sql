-- What went wrong with tasks. `created_at` is when the report arrived, `occurred_at` when it occurred, and `is_clamped`
-- whether the corrected time of the device was impossible and `occurred_at` is the nearest possible one. `actor` and
-- `api_client_id` (the nil UUID once it is erased) say who reported it. It is open while `closed_at` is null;
-- `closed_with` is what was done. Erasing removes the texts.
CREATE TABLE incidents (
    store_id uuid NOT NULL,
    id uuid NOT NULL,
    delivery_id uuid NOT NULL,
    task_id uuid NOT NULL,
    description text,
    failure_reason text,
    metadata jsonb NOT NULL,
    actor text NOT NULL,
    api_client_id uuid NOT NULL,
    created_at bigint NOT NULL,
    occurred_at bigint NOT NULL,
    is_clamped boolean NOT NULL,
    closed_at bigint,
    closed_with text,
    PRIMARY KEY (store_id, id)
);
-- Dispatch finds one by its id alone.
CREATE INDEX incidents_by_id ON incidents (id);
CREATE INDEX incidents_of_tasks ON incidents (store_id, task_id, created_at, id);
-- The lists of all stores.
CREATE INDEX incidents_by_time ON incidents (created_at, id);
CREATE INDEX incidents_open ON incidents (created_at, id) WHERE closed_at IS NULL;

-- How many incidents of the task are open; null if none is.
ALTER TABLE tasks ADD COLUMN open_incidents bigint;
