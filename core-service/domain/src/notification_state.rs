//! The state of a notification, as shown to API clients.

/// Whether a notification is still to be sent, and its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not attempted yet since it was enqueued or resent.
    Pending,
    /// The last attempt failed; a retry is scheduled.
    Failed,
    Delivered,
    /// All attempts of the schedule failed.
    Exhausted,
    /// Not to be sent, because its webhook was disabled or deleted.
    Cancelled,
}

impl State {
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::Failed,
        Self::Delivered,
        Self::Exhausted,
        Self::Cancelled,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Failed => "failed",
            Self::Delivered => "delivered",
            Self::Exhausted => "exhausted",
            Self::Cancelled => "cancelled",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no state {0:?}; the states are {known}",
    known = State::ALL.map(State::as_str).join(", ")
)]
pub struct UnknownState(String);

impl std::str::FromStr for State {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| UnknownState(text.chars().take(64).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_written() {
        let texts = ["pending", "failed", "delivered", "exhausted", "cancelled"];
        for (state, text) in State::ALL.into_iter().zip(texts) {
            assert_eq!((state.as_str(), text.parse()), (text, Ok(state)));
        }
        assert_eq!(
            "lost".parse::<State>().unwrap_err().to_string(),
            "there is no state \"lost\"; the states are \
             pending, failed, delivered, exhausted, cancelled"
        );
    }
}
