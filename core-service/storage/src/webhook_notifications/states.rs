//! Maps the states that the owner sees to the stored ones.

use domain::notification_state::State;
use sea_orm::{
    ColumnTrait, Condition,
    sea_query::{Expr, ExprTrait as _},
};

use crate::{
    Error,
    entity::notification::{Column, Model},
    notifications::state::{CANCELLED, DELIVERED, EXHAUSTED, LEASED, PENDING},
};

/// Whether a notification's state is one of some states. If all of them are failed, exhausted or
/// cancelled, the condition repeats that of the partial index `notifications_failed` literally, so
/// that planners choose it.
pub(super) fn is_any_of(states: &[State]) -> Condition {
    let any = states
        .iter()
        .fold(Condition::any(), |any, state| any.add(is(*state)));
    let is_undelivered =
        |state| matches!(state, State::Failed | State::Exhausted | State::Cancelled);
    if !states.iter().copied().all(is_undelivered) {
        return Condition::all().add(any);
    }
    Condition::all()
        .add(Expr::cust("state <> 'delivered'"))
        .add(Expr::cust("(attempts > 0 OR state = 'cancelled')"))
        .add(any)
}

fn is(state: State) -> Condition {
    let unfinished = || Condition::all().add(Column::State.is_in([PENDING, LEASED]));
    let attempts = || Expr::col(Column::Attempts);
    let resent_at_attempt = || Expr::col(Column::ResentAtAttempt);
    match state {
        State::Pending => unfinished().add(attempts().lte(resent_at_attempt())),
        State::Failed => unfinished().add(attempts().gt(resent_at_attempt())),
        State::Delivered => Condition::all().add(Column::State.eq(DELIVERED)),
        State::Exhausted => Condition::all().add(Column::State.eq(EXHAUSTED)),
        State::Cancelled => Condition::all().add(Column::State.eq(CANCELLED)),
    }
}

/// The state of a row, as the owner sees it.
pub(super) fn of_row(row: &Model) -> Result<State, Error> {
    Ok(match row.state.as_str() {
        PENDING | LEASED if row.attempts > row.resent_at_attempt => State::Failed,
        PENDING | LEASED => State::Pending,
        DELIVERED => State::Delivered,
        EXHAUSTED => State::Exhausted,
        CANCELLED => State::Cancelled,
        other => {
            let reason = format!("state {other:?}");
            return Err(Error::inconsistent("notifications", reason));
        }
    })
}
