-- no-transaction
-- The webhooks that fail, of all stores. A webhook that does not fail costs nothing.
CREATE INDEX CONCURRENTLY IF NOT EXISTS webhooks_failing ON webhooks (failing_since, id)
    WHERE failing_since IS NOT NULL;
