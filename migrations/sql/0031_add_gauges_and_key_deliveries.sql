-- What the metrics of the platform show: one core at a time reads it (`claimed_until`), all show it. The instants are of
-- the lease clock. `state` is JSON, null before the first reading.
CREATE TABLE platform_gauges (
    id bigint NOT NULL,
    claimed_until bigint NOT NULL,
    read_at bigint NOT NULL,
    state text,
    PRIMARY KEY (id)
);
INSERT INTO platform_gauges (id, claimed_until, read_at) VALUES (1, 0, 0);

-- The delivery whose personal data the stored response may have; the nil UUID if that of none. Null if a program of an
-- earlier version stored it.
ALTER TABLE idempotency_keys ADD COLUMN delivery_id uuid;
