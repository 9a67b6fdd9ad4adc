-- Connects a notification to the trace of the call that caused its event.
ALTER TABLE notifications ADD COLUMN traceparent text;
