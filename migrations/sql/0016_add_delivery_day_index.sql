-- no-transaction
-- Lists and searches of the deliveries of all stores, by the end of the dropoff's window. A create adds one entry of 24
-- bytes, near those of the other deliveries of its day.
CREATE INDEX CONCURRENTLY IF NOT EXISTS deliveries_by_day ON deliveries (dropoff_before, id);
