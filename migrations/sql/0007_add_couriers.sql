CREATE TABLE couriers (
    id uuid NOT NULL,
    display_name text NOT NULL,
    telephone text,
    created_at bigint NOT NULL,
    disabled_at bigint,
    PRIMARY KEY (id)
);

-- A list of a courier on a day of the platform, such as `2026-12-01`. Made when it is first named: changes of lists
-- lock these rows, before they lock deliveries. `changed_by` is the API client that changed it last.
CREATE TABLE courier_lists (
    day text NOT NULL,
    courier_id uuid NOT NULL,
    changed_at bigint NOT NULL,
    changed_by uuid NOT NULL,
    PRIMARY KEY (day, courier_id)
);

-- The task's place in a list: all three or none.
ALTER TABLE tasks ADD COLUMN courier_id uuid;
ALTER TABLE tasks ADD COLUMN list_day text;
ALTER TABLE tasks ADD COLUMN list_position bigint;

-- Of `assigned`.
ALTER TABLE task_events ADD COLUMN courier_id uuid;
ALTER TABLE task_events ADD COLUMN list_day text;
