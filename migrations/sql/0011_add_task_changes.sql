-- What watchers of tasks get: a row per changed delivery (`store_id`, `delivery_id`) or list of a courier (`courier_id`,
-- `list_day`). The transaction of the change adds it to the queue. Once it is committed, a core moves it to the log,
-- with the next position.
CREATE TABLE task_change_queue (
    id bigserial NOT NULL,
    store_id uuid,
    delivery_id uuid,
    courier_id uuid,
    list_day text,
    PRIMARY KEY (id)
);

CREATE TABLE task_changes (
    position bigint NOT NULL,
    moved_at bigint NOT NULL,
    store_id uuid,
    delivery_id uuid,
    courier_id uuid,
    list_day text,
    PRIMARY KEY (position)
);

-- One row, which is locked while changes are moved: the last position, and the newest one that retention has removed
-- (0 if none).
CREATE TABLE task_change_logs (
    id bigint NOT NULL,
    last_position bigint NOT NULL,
    retained_after bigint NOT NULL,
    PRIMARY KEY (id)
);
INSERT INTO task_change_logs (id, last_position, retained_after) VALUES (1, 0, 0);
