-- no-transaction
-- The notifications of a delivery, whose receivers' answers are erased with it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS notifications_by_delivery ON notifications (store_id, delivery_id);
