//! How far a notification has come, as its owner sees it.

/// Whether a notification is owed still, and how it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Owed, and not tried yet since it came to be owed or was asked for again.
    Pending,
    /// Tried in vain; another attempt is due.
    Failed,
    Delivered,
    /// Tried in vain as often as the schedule has it.
    GivenUp,
    /// Not to be sent: its webhook was disabled, or had ended.
    Dropped,
}

impl State {
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::Failed,
        Self::Delivered,
        Self::GivenUp,
        Self::Dropped,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Failed => "failed",
            Self::Delivered => "delivered",
            Self::GivenUp => "given_up",
            Self::Dropped => "dropped",
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
