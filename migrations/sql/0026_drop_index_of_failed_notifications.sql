-- no-transaction
-- `notifications_by_state` has them too.
DROP INDEX CONCURRENTLY IF EXISTS notifications_failed;
