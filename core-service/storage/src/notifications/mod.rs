//! Notifications: the outbox, claims under leases, outcomes, and cancellation.
//!
//! A notification is `pending` until a dispatcher claims it under a lease (`leased`), and finishes
//! as `delivered`, `exhausted` (no attempts left) or `cancelled` (its webhook was disabled or
//! deleted). It may be pre-leased: inserted with a lease for a dispatcher that is connected to
//! this process. Pending notifications of a disabled webhook are cancelled in the background
//! ([`backlog_cleanup`]). Claims and outcomes cover all stores: a dispatcher serves all of them.
//!
//! Over `PostgreSQL`, transactions run concurrently. They take their locks in one order, so that
//! they don't deadlock:
//! 1. Leased notifications. Only the transaction that applies their outcomes waits for them.
//!    Releases and cancellations skip locked ones ([`cancellation::lock_skip_locked`]), with the
//!    same result: the transaction that has locked one finds its webhook disabled, and cancels it.
//! 2. Webhooks, ordered by store and id, in one statement, with the strongest lock that the
//!    transaction needs: `FOR UPDATE` to disable or delete one, else `FOR NO KEY UPDATE`, which
//!    admits the `FOR KEY SHARE` of transactions that enqueue (in the same order). Claims skip
//!    locked ones.
//! 3. Other notifications: pending, cancelled, or finished. A transaction that waits for one has
//!    locked its webhook.
//! 4. Hosts of unproven webhooks. A claim locks them after their webhooks. Outcomes change them in
//!    a transaction of their own ([`record_host_outcomes`]); two of those may deadlock, and are
//!    retried.
//!
//! [`record_host_outcomes`]: super::webhooks::record_host_outcomes
//!
//! Besides that of hosts, one deadlock remains possible: when an outcome is reported just as its lease expires, or to two
//! cores at once, a transaction waits for a leased notification and locks it after its state has
//! changed. If that closes a cycle, the database aborts one transaction after a second, and it is
//! retried ([`Storage::write`](super::Storage::write)).

mod attempts;
mod backlog_cleanup;
mod cancellation;
mod claims;
mod created;
mod due_batch;
mod eligibility;
mod leases;
mod outbox;
mod outcome_plan;
mod outcomes;
pub(super) mod queue;
mod receiver_health;
mod retention;
#[cfg(test)]
mod tests;

pub(crate) use self::outbox::{DeliveryEvent, record_events_of_many};
pub use self::{
    attempts::{AttemptReport, RecordedAttempt, insert_attempts},
    backlog_cleanup::{cancel_backlog, cancel_backlog_batch, cancel_whole_backlog},
    cancellation::cancel_notifications,
    claims::{ClaimedBatch, ClaimedNotification, claim},
    created::{Notified, notify_of_created},
    eligibility::{is_any_claimable, is_any_due},
    leases::{Lease, is_any_expired, release, release_all, release_expired, renew_all},
    outbox::{DeliveryChange, NewNotification, insert, record_events},
    outcomes::{AppliedOutcomes, apply_outcomes},
    retention::{remove_finished, remove_of_deliveries},
};

use domain::webhook::WebhookKey;

use crate::{entity::notification::Column, prelude::*};

pub(crate) const PENDING: &str = "pending";
pub(crate) const LEASED: &str = "leased";
pub(crate) const DELIVERED: &str = "delivered";
pub(crate) const EXHAUSTED: &str = "exhausted";
pub(crate) const CANCELLED: &str = "cancelled";

/// The most notifications or events that one statement inserts: each has at most 16 parameters, and `SQLite` permits
/// 32,766.
const MAX_ROWS: usize = 1000;

/// Literal SQL, not a parameter: planners choose the partial indexes of pending and of leased
/// notifications by this text.
fn is_pending() -> SimpleExpr {
    Expr::cust("state = 'pending'")
}

fn is_leased() -> SimpleExpr {
    Expr::cust("state = 'leased'")
}

/// Whether a notification is of a webhook.
pub(crate) fn of_webhook(webhook: WebhookKey) -> Condition {
    Condition::all()
        .add(Column::StoreId.eq(webhook.store_id.0))
        .add(Column::WebhookId.eq(webhook.webhook_id.0))
}

/// Whether a notification that is found by its id is in a state. Not the text of any index's condition: while a long
/// snapshot is open, such an index has an entry for each notification that was in the state since.
fn is_in(state: &'static str) -> SimpleExpr {
    Expr::cust(format!("state || '' = '{state}'"))
}
