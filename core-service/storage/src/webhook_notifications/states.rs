//! The states that a notification's owner sees, in terms of those it is kept in.

use domain::notification_state::State;
use sea_orm::{
    ColumnTrait, Condition,
    sea_query::{Expr, ExprTrait as _},
};

use crate::{
    Error,
    entity::notification::{Column, Model},
    notifications::{DELIVERED, DROPPED, GIVEN_UP, LEASED, PENDING},
};

/// Those of whom nothing may be delivered, or pending, are found by an index of their own, which
/// is known by its words.
pub(super) fn in_any(states: &[State]) -> Condition {
    let any = states
        .iter()
        .fold(Condition::any(), |any, state| any.add(is(*state)));
    let has_failed = |state| matches!(state, State::Failed | State::GivenUp | State::Dropped);
    if !states.iter().copied().all(has_failed) {
        return Condition::all().add(any);
    }
    Condition::all()
        .add(Expr::cust("state <> 'delivered'"))
        .add(Expr::cust("(attempts > 0 OR state = 'dropped')"))
        .add(any)
}

fn is(state: State) -> Condition {
    let owed = || Condition::all().add(Column::State.is_in([PENDING, LEASED]));
    let attempts = || Expr::col(Column::Attempts);
    let restarted_after = || Expr::col(Column::RestartedAfter);
    match state {
        State::Pending => owed().add(attempts().lte(restarted_after())),
        State::Failed => owed().add(attempts().gt(restarted_after())),
        State::Delivered => Condition::all().add(Column::State.eq(DELIVERED)),
        State::GivenUp => Condition::all().add(Column::State.eq(GIVEN_UP)),
        State::Dropped => Condition::all().add(Column::State.eq(DROPPED)),
    }
}

/// The state of a row.
pub(super) fn of(row: &Model) -> Result<State, Error> {
    Ok(match row.state.as_str() {
        PENDING | LEASED if row.attempts > row.restarted_after => State::Failed,
        PENDING | LEASED => State::Pending,
        DELIVERED => State::Delivered,
        GIVEN_UP => State::GivenUp,
        DROPPED => State::Dropped,
        other => {
            let what = format!("state {other:?}");
            return Err(Error::inconsistent("notifications", what));
        }
    })
}
