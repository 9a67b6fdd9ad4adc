-- How many deliveries they are the bytes of. 0 of those that a program of an earlier version created.
ALTER TABLE created_bytes ADD COLUMN deliveries bigint NOT NULL DEFAULT 0;
