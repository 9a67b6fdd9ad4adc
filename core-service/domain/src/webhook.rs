//! Webhooks: who is told of which event, where, and signed with what.

use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::{SignedDuration, Timestamp};

use crate::{
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

    /// When what it was not told of happened, as far as that was not before an instant: both ends
    /// are included. It may have been told of some of what was near the ends, which only its
    /// notifications tell: where not all are kept, of so long ago, the time begins after what is
    /// in doubt, and ends before.
    pub fn missed_since(
        &self,
        since: Timestamp,
        kept_since: Timestamp,
    ) -> Option<(Timestamp, Timestamp)> {
        let (from, until) = self.missed?;
        let surely_from = from.saturating_add(UNDER_WAY).ok()?;
        let surely_until = until.saturating_sub(UNDER_WAY).ok()?;
        let perhaps_until = until.saturating_add(UNDER_WAY).ok()?;
        let earliest = kept_since.clamp(self.perhaps_missed_from()?, surely_from);
        let latest = if kept_since <= surely_until {
            perhaps_until
        } else {
            surely_until
        };
        let earliest = earliest.max(since);
        (earliest <= latest).then_some((earliest, latest))
    }

    /// Forgets what it missed once that is owed, as far as it was not before an instant: if that was
    /// all, and nothing of it is under way any more. Whether that is new.
    pub fn forget_missed(&mut self, since: Timestamp, now: Timestamp) -> bool {
        let is_all = self
            .perhaps_missed_from()
            .is_some_and(|earliest| since <= earliest);
        let over = self
            .missed
            .map(|(_, until)| until.saturating_add(UNDER_WAY));
        let is_over = over.is_some_and(|over| over.is_ok_and(|over| over < now));
        if is_all && is_over {
            self.missed = None;
        }
        is_all && is_over
    }

    /// Nothing was missed before it was registered.
    fn perhaps_missed_from(&self) -> Option<Timestamp> {
        let (from, _) = self.missed?;
        let registered = self
            .created_at
            .saturating_add(SignedDuration::from_micros(1));
        let earlier = from.saturating_sub(UNDER_WAY);
        Some(from.min(earlier.ok()?.max(registered.ok()?)))
    }
}

/// Longer than a request takes. What it brings about has its instant from its beginning, and asks
/// in the end who is to be told of it: then a webhook may have been disabled or enabled meanwhile.
const UNDER_WAY: SignedDuration = SignedDuration::from_secs(30);

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

#[cfg(test)]
mod tests {
    use super::*;

    /// A webhook registered, disabled and enabled at these seconds.
    fn webhook(registered: i64, disabled: i64, enabled: i64) -> Webhook {
        let mut webhook = Webhook {
            id: WebhookId::new(),
            store_id: StoreId::new(),
            api_client_id: ApiClientId::new(),
            event: EventName::DeliveryCompleted,
            url: String::new(),
            created_at: second(registered),
            overlap_ends_at: None,
            disabled: None,
            missed: None,
        };
        assert!(webhook.disable(Disabled {
            at: second(disabled),
            reason: DisabledReason::Client,
        }));
        assert!(webhook.enable(second(enabled)));
        webhook
    }

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn seconds((from, until): (i64, i64)) -> (Timestamp, Timestamp) {
        (second(from), second(until))
    }

    #[test]
    fn what_was_under_way_as_it_was_disabled_or_enabled_may_have_been_missed() {
        for (since, expected) in [
            (second(0), (70, 230)),
            (second(90), (90, 230)),
            (Timestamp::MIN, (70, 230)),
        ] {
            let missed = webhook(0, 100, 200).missed_since(since, second(0));
            assert_eq!(missed, Some(seconds(expected)));
        }
        let missed = webhook(0, 100, 200).missed_since(second(231), second(0));
        assert_eq!(missed, None);
    }

    /// Whether it was told of that, nobody knows any more; of the rest it surely was not.
    #[test]
    fn what_was_under_way_longer_ago_than_notifications_are_kept_is_left_out() {
        for (kept_since, expected) in [
            (70, (70, 230)),
            (71, (71, 230)),
            (129, (129, 230)),
            (130, (130, 230)),
            (170, (130, 230)),
            (171, (130, 170)),
            (1_000_000, (130, 170)),
        ] {
            let missed = webhook(0, 100, 200).missed_since(second(0), second(kept_since));
            assert_eq!(missed, Some(seconds(expected)), "{kept_since}");
        }
        let missed = webhook(0, 100, 159).missed_since(second(0), second(1_000_000));
        assert_eq!(missed, None, "all of it is in doubt");
    }

    #[test]
    fn nothing_was_missed_before_it_was_registered() {
        let after = second(90) + SignedDuration::from_micros(1);
        let missed = webhook(90, 100, 200).missed_since(second(0), second(0));
        assert_eq!(missed, Some((after, second(230))));
        let missed = webhook(100, 100, 200).missed_since(second(0), second(0));
        assert_eq!(missed, Some(seconds((100, 230))));
        let never = Webhook {
            missed: None,
            ..webhook(0, 1, 2)
        };
        assert_eq!(never.missed_since(second(0), second(0)), None);
    }

    #[test]
    fn what_was_missed_is_forgotten_once_it_is_all_owed() {
        for (since, now, is_forgotten) in [
            (70, 231, true),
            (0, 1_000_000, true),
            (71, 1_000_000, false),
            // Something may still be under way.
            (0, 230, false),
        ] {
            let mut webhook = webhook(0, 100, 200);
            assert_eq!(
                webhook.forget_missed(second(since), second(now)),
                is_forgotten
            );
            assert_eq!(webhook.missed.is_none(), is_forgotten, "{since}, {now}");
            assert!(!is_forgotten || !webhook.forget_missed(second(since), second(now)));
        }
    }
}
