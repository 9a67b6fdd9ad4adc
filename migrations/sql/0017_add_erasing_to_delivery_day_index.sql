-- no-transaction
-- The index of 0016 serves retention too, also that of programs of earlier versions: a create adds as many entries as before.
DROP INDEX CONCURRENTLY IF EXISTS deliveries_not_erased;
