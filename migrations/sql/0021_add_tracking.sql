-- What opens the tracking page of a delivery: 128 random bits, beside the id of its dropoff, by which the page is found.
-- Null if a program of an earlier version created the delivery, and once it is erased.
ALTER TABLE deliveries ADD COLUMN tracking_secret bytea;
-- When dispatch revoked the link of that page.
ALTER TABLE deliveries ADD COLUMN tracking_revoked_at bigint;
-- Whether the deliveries of a store have such pages, and the telephone number that these show.
ALTER TABLE stores ADD COLUMN has_tracking boolean NOT NULL DEFAULT TRUE;
ALTER TABLE stores ADD COLUMN telephone text;
