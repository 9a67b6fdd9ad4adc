//! The stored states of a notification.

use sea_orm::sea_query::{Expr, SimpleExpr};

pub(crate) const PENDING: &str = "pending";
pub(crate) const LEASED: &str = "leased";
pub(crate) const DELIVERED: &str = "delivered";
pub(crate) const EXHAUSTED: &str = "exhausted";
pub(crate) const CANCELLED: &str = "cancelled";

/// Literal SQL, not a parameter: planners choose the partial indexes of pending and of leased
/// notifications by this text.
pub(super) fn is_pending() -> SimpleExpr {
    Expr::cust("state = 'pending'")
}

pub(super) fn is_leased() -> SimpleExpr {
    Expr::cust("state = 'leased'")
}

pub(super) fn is_cancelled() -> SimpleExpr {
    Expr::cust("state = 'cancelled'")
}
