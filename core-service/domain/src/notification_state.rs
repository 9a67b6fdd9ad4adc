//! The state of a notification, as shown to API clients.

use crate::named_enum::named_enum;

named_enum! {
    /// Whether a notification is still to be sent, and its outcome.
    pub enum State("state", ", ") {
        /// Not attempted yet since it was enqueued or resent.
        Pending = "pending",
        /// The last attempt failed; a retry is scheduled.
        Failed = "failed",
        Delivered = "delivered",
        /// All attempts of the schedule failed.
        Exhausted = "exhausted",
        /// Not to be sent, because its webhook was disabled or deleted.
        Cancelled = "cancelled",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_written() {
        let texts = ["pending", "failed", "delivered", "exhausted", "cancelled"];
        assert_eq!(State::ALL.map(State::as_str), texts);
        assert_eq!(texts.map(str::parse), State::ALL.map(Ok));
        assert_eq!(
            "lost".parse::<State>().unwrap_err(),
            "there is no state \"lost\"; the states are \
             pending, failed, delivered, exhausted, cancelled"
        );
    }
}
