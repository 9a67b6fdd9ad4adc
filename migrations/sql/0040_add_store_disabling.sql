-- Since when the clients of a store get no tokens and no answers; null if it is enabled.
ALTER TABLE stores ADD COLUMN disabled_at bigint;
