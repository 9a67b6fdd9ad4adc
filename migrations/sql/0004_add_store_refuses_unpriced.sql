-- Whether a store refuses deliveries without a price.
ALTER TABLE stores ADD COLUMN refuses_unpriced boolean NOT NULL DEFAULT FALSE;
