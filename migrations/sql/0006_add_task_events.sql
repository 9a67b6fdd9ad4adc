-- The history of tasks: a row per transition, in the transaction of the change. Rows are only added; erasing removes
-- the texts and the client in them. `created_at` is when the report arrived: under the lock of the delivery, each
-- change gets a later one than the change before, so that it orders the rows. `actor` and `api_client_id` say whose
-- report it was (the nil UUID once it is erased), `occurred_at` when the change occurred, and `is_clamped` whether the
-- corrected time of the device was impossible and `occurred_at` is the nearest possible one. `reason` is of a failure,
-- `notes` of a failure or a completion, `contact_name` of a completion; a reschedule has its new window in `after` and
-- `before`, and the window until then.
CREATE TABLE task_events (
    store_id uuid NOT NULL,
    task_id uuid NOT NULL,
    created_at bigint NOT NULL,
    transition text NOT NULL,
    actor text NOT NULL,
    api_client_id uuid NOT NULL,
    occurred_at bigint NOT NULL,
    is_clamped boolean NOT NULL,
    reason text,
    notes text,
    contact_name text,
    after bigint,
    before bigint,
    previous_after bigint,
    previous_before bigint,
    PRIMARY KEY (store_id, task_id, created_at)
);
