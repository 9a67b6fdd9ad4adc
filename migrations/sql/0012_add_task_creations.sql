-- Whether the delivery is new: with its place in the log, it gets its event `delivery.created`. Null if it is not, or if
-- a program of an earlier version has created it.
ALTER TABLE task_change_queue ADD COLUMN is_creation boolean;

-- One row, which is locked while the notifications of new deliveries are inserted: the position of the last event whose
-- notifications are.
CREATE TABLE notified_positions (
    id bigint NOT NULL,
    position bigint NOT NULL,
    PRIMARY KEY (id)
);
INSERT INTO notified_positions (id, position) SELECT 1, last_position FROM event_sequencers;
