//! Events, the notifications owed for them, their leases, and the attempts made.
//!
//! A notification is `pending` until a dispatcher holds a lease on it (`leased`), and ends as
//! `delivered`, `given_up` (the schedule is exhausted) or `dropped` (its webhook is no more).
//! It may be leased from its birth, to a dispatcher with a stream to this very process.
//! What is pending of a disabled webhook waits for nothing but to be dropped ([`leftover`]).
//! Claims and outcomes go by notification, whatever its store: the dispatcher serves them all.
//!
//! Over `PostgreSQL` transactions run beside each other, and all lock in one order, so that none
//! waits for one that waits for it:
//! 1. Notifications under leases. Only who reports their outcomes waits for them; whoever gives
//!    back or drops passes over what is locked ([`owed::lock_free`]), which comes to the same:
//!    whoever has it finds its webhook ended, and drops it.
//! 2. Webhooks, by store and id, in one statement, as strongly as they will be needed: `FOR
//!    UPDATE` to disable or delete one, else `FOR NO KEY UPDATE`, beside which others may hold a
//!    place (`FOR KEY SHARE`, in the same order). Claims pass over what is locked.
//! 3. Other notifications: pending, dropped, or ended. Who waits for one has its webhook.
//!
//! A claim may follow outcomes in their transaction: it waits for no webhook, and has those of all
//! that it takes.
//!
//! What is left is a lease that is reported just as it ends, or to two cores at once: who waited
//! for a notification in vain has it locked all the same, whatever it is by then. Should that make
//! a circle, the database breaks it after a second, and one is begun again
//! ([`Storage::write`](super::Storage::write)).

mod due;
mod leases;
mod leftover;
mod outcomes;
mod owed;
mod queue;
mod retention;
mod standing;
#[cfg(test)]
mod tests;
mod verdicts;

use sea_orm::sea_query::{Expr, SimpleExpr};

pub use self::{
    leases::{
        Claim, Claimed, claim, is_any_expired, release, release_all, release_expired, renew_all,
    },
    leftover::{drop_backlog, drop_left_of, drop_some_left},
    outcomes::{Attempt, Recorded, Report, insert_attempts, record},
    owed::{Owed, drop_owed, insert, record_events},
    queue::{is_any_due, is_any_turn, wake},
    retention::remove_finished,
};

pub(super) const PENDING: &str = "pending";
pub(super) const LEASED: &str = "leased";
pub(super) const DELIVERED: &str = "delivered";
pub(super) const GIVEN_UP: &str = "given_up";
pub(super) const DROPPED: &str = "dropped";

/// Spelled out, not a parameter: the indexes of what is pending and what is leased are partial,
/// and found by that.
fn is_pending() -> SimpleExpr {
    Expr::cust("state = 'pending'")
}

fn is_leased() -> SimpleExpr {
    Expr::cust("state = 'leased'")
}

fn is_dropped() -> SimpleExpr {
    Expr::cust("state = 'dropped'")
}
