//! Webhooks: who is told of which event, where, and signed with what.

use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::Timestamp;

use crate::domain::{
    event::EventName,
    id::{ApiClientId, StoreId, WebhookId},
};

#[derive(Clone, Debug)]
pub struct Webhook {
    pub id: WebhookId,
    pub store_id: StoreId,
    pub api_client_id: ApiClientId,
    pub event: EventName,
    pub url: String,
    pub created_at: Timestamp,
    /// Until when its old secrets are live too, if there are any.
    pub overlap_ends_at: Option<Timestamp>,
    /// None while it is enabled.
    pub disabled: Option<Disabled>,
    /// From when to when it was disabled the last time.
    pub missed: Option<(Timestamp, Timestamp)>,
}

impl Webhook {
    /// Tells it nothing any more. Whether that is new.
    pub fn disable(&mut self, disabled: Disabled) -> bool {
        let is_new = self.disabled.is_none();
        self.disabled.get_or_insert(disabled);
        is_new
    }

    /// Tells it of what happens from now on. Whether that is new.
    pub fn enable(&mut self, now: Timestamp) -> bool {
        let Some(disabled) = self.disabled.take() else {
            return false;
        };
        self.missed = Some((disabled.at, now));
        true
    }
}

/// Since when and why a webhook is told nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disabled {
    pub at: Timestamp,
    pub reason: DisabledReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisabledReason {
    /// Its client said so.
    Client,
    /// The platform's operator said so.
    Operator,
    /// Its receiver answered 410.
    Gone,
    /// Its receiver has only failed for too long.
    Failing,
}

impl DisabledReason {
    const ALL: [Self; 4] = [Self::Client, Self::Operator, Self::Gone, Self::Failing];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Operator => "operator",
            Self::Gone => "gone",
            Self::Failing => "failing",
        }
    }

    /// The reason with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }
}

/// How many webhooks a client may have.
pub const MOST_PER_CLIENT: u64 = 100;

/// A webhook's signing secret: 32 bytes, shown as padded Base64. The text keys the specified
/// signature, the bytes the Standard Webhooks one.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    pub fn new(random: [u8; 32]) -> Self {
        Self(random)
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// 44 characters of padded Base64.
    pub fn to_text(&self) -> String {
        BASE64_STANDARD.encode(self.0)
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}
