-- How the tracking pages of a store look: the number of a colour, and the version of the logo. Null if it has none.
ALTER TABLE stores ADD COLUMN colour bigint;
ALTER TABLE stores ADD COLUMN logo_version text;
-- The image, apart from the row that is read with every delivery.
CREATE TABLE store_logos (
    store_id uuid NOT NULL PRIMARY KEY,
    content bytea NOT NULL
);
