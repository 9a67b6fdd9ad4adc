//! Events, the notifications owed for them, their leases, and the attempts made.
//!
//! A notification is `pending` until a dispatcher holds a lease on it (`leased`), and ends as
//! `delivered`, `given_up` (the schedule is exhausted) or `dropped` (its webhook is no more).
//! Claims and outcomes go by notification, whatever its store: the dispatcher serves them all.

mod leases;
mod outcomes;
mod owed;
#[cfg(test)]
mod tests;

pub(crate) use self::{
    leases::{Claimed, claim, is_any_due, is_any_expired, release, release_all, release_expired},
    outcomes::{Report, insert_attempts, record},
    owed::{drop_owed, record_events},
};

const PENDING: &str = "pending";
const LEASED: &str = "leased";
const DELIVERED: &str = "delivered";
const GIVEN_UP: &str = "given_up";
const DROPPED: &str = "dropped";
