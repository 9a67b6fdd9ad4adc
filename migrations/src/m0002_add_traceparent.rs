//! `notifications.traceparent`: connects a notification to the trace of the call that caused its event.

use crate::migration::Migration;

pub(crate) const MIGRATION: Migration = Migration {
    name: "m0002_add_traceparent",
    statements: &["ALTER TABLE notifications ADD COLUMN traceparent text"],
};
