//! Maps the states that API clients see to the stored ones.

use domain::notification_state::State;
use sea_orm::{
    ColumnTrait, Condition,
    sea_query::{Expr, ExprTrait as _},
};

use crate::{
    Error,
    entity::notification::{Column, Model},
    notifications::{CANCELLED, DELIVERED, EXHAUSTED, LEASED, PENDING},
};

/// Whether a notification's state is one of some states. If all of them are failed, exhausted or
/// cancelled, the condition repeats that of the partial index `notifications_failed` literally, so
/// that planners choose it.
pub(super) fn is_any_of(states: &[State]) -> Condition {
    let any = states
        .iter()
        .fold(Condition::any(), |any, state| any.add(is(*state)));
    let is_unsuccessful =
        |state| matches!(state, State::Failed | State::Exhausted | State::Cancelled);
    if !states.iter().copied().all(is_unsuccessful) {
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
    let attempts_at_resend = || Expr::col(Column::AttemptsAtResend);
    match state {
        State::Pending => unfinished().add(attempts().lte(attempts_at_resend())),
        State::Failed => unfinished().add(attempts().gt(attempts_at_resend())),
        State::Delivered => Condition::all().add(Column::State.eq(DELIVERED)),
        State::Exhausted => Condition::all().add(Column::State.eq(EXHAUSTED)),
        State::Cancelled => Condition::all().add(Column::State.eq(CANCELLED)),
    }
}

/// The state of a row, as API clients see it.
pub(super) fn of_row(row: &Model) -> Result<State, Error> {
    Ok(match row.state.as_str() {
        PENDING | LEASED if row.attempts > row.attempts_at_resend => State::Failed,
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
