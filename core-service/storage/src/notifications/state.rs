//! Conditions on notifications: their stored states, and their webhook.

use crate::{entity::notification::Column, prelude::*, webhooks::WebhookKey};

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

/// Whether a notification is of a webhook.
pub(crate) fn of_webhook((store_id, webhook_id): WebhookKey) -> Condition {
    Condition::all()
        .add(Column::StoreId.eq(store_id.0))
        .add(Column::WebhookId.eq(webhook_id.0))
}

pub(super) fn is_cancelled() -> SimpleExpr {
    Expr::cust("state = 'cancelled'")
}
