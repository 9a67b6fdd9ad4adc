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
    pub disabled_at: Option<Timestamp>,
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
