//! Maps the states that API clients see to the stored ones.

use domain::notification::State;
use sea_orm::sea_query::{Expr, SimpleExpr};

use crate::{
    Error,
    entity::notification::Model,
    notifications::{CANCELLED, DELIVERED, EXHAUSTED, LEASED, PENDING},
};

/// The state that API clients see. The index `notifications_by_state` has this expression, and all but the delivered
/// ones: conditions repeat both literally, so that planners choose it.
const STATE: &str = "(CASE WHEN state NOT IN ('pending', 'leased') THEN state \
    WHEN attempts > attempts_at_resend THEN 'failed' ELSE 'pending' END)";

/// Whether a notification's state is a given one.
pub(super) fn is(state: State) -> SimpleExpr {
    Expr::cust(match state {
        State::Delivered => "state = 'delivered'".to_owned(),
        _ => format!("{STATE} = '{}' AND state <> 'delivered'", state.as_str()),
    })
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
