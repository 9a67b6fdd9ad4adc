//! Events, the notifications owed for them, their leases, and the attempts made.
//!
//! A notification is `pending` until a dispatcher holds a lease on it (`leased`), and ends as
//! `delivered`, `given_up` (the schedule is exhausted) or `dropped` (its webhook is no more).
//! It may be leased from its birth, to a dispatcher with a stream to this very process.
//! Claims and outcomes go by notification, whatever its store: the dispatcher serves them all.

mod leases;
mod outcomes;
mod owed;
mod queue;
mod retention;
mod standing;
#[cfg(test)]
mod tests;
mod verdicts;

use sea_orm::sea_query::{Expr, SimpleExpr};

pub(crate) use self::{
    leases::{
        Claim, Claimed, claim, is_any_expired, release, release_all, release_expired, renew_all,
    },
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
