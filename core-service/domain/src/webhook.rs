//! Webhooks: subscriptions of API clients to events, with a receiver URL and signing secrets.

use std::ops::RangeInclusive;

use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::{SignedDuration, Timestamp};

use crate::{
    id::{ApiClientId, StoreId, WebhookId},
    named_enum::named_enum,
};

/// The primary key of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WebhookKey {
    pub store_id: StoreId,
    pub webhook_id: WebhookId,
}

#[derive(Clone, Debug)]
pub struct Webhook {
    pub id: WebhookId,
    pub store_id: StoreId,
    pub api_client_id: ApiClientId,
    /// The name of an event. A newer version may have stored one that this version does not know.
    pub event: String,
    pub url: String,
    /// The URL's host and port.
    pub host: String,
    pub created_at: Timestamp,
    /// When the overlap of a secret rotation ends and the older secrets expire; `None` without one.
    pub overlap_ends_at: Option<Timestamp>,
    /// `None` while it is enabled.
    pub disabled: Option<Disabled>,
    /// The start and end of the last period in which it was disabled.
    pub last_disabled_period: Option<(Timestamp, Timestamp)>,
}

impl Webhook {
    pub fn key(&self) -> WebhookKey {
        WebhookKey {
            store_id: self.store_id,
            webhook_id: self.id,
        }
    }

    /// Disables the webhook. If it already is, only the operator's reason replaces another one: its
    /// client could otherwise enable it. Returns whether it was changed.
    pub fn disable(&mut self, disabled: Disabled) -> bool {
        let Some(earlier) = &mut self.disabled else {
            self.disabled = Some(disabled);
            return true;
        };
        let operator = DisabledReason::Operator;
        let is_changed = disabled.reason == operator && earlier.reason != operator;
        if is_changed {
            earlier.reason = operator;
        }
        is_changed
    }

    /// Enables the webhook for events from `now` on. Returns whether it was disabled.
    pub fn enable(&mut self, now: Timestamp) -> bool {
        let Some(disabled) = self.disabled.take() else {
            return false;
        };
        self.last_disabled_period = Some((disabled.at, now));
        true
    }

    /// The period, at or after `since`, whose events this webhook may have missed while it was
    /// disabled.
    ///
    /// An event within `EVENT_TIME_MARGIN` of the start or the end of the disabled period was missed
    /// only if the webhook has no notification of it. Notifications older than `retained_since` may
    /// have been removed, and without them such an event could be sent twice. So of the margin around
    /// the start, only the part from `retained_since` on is included, and the margin around the end
    /// is left out unless all its notifications are retained.
    pub fn missed_period(
        &self,
        since: Timestamp,
        retained_since: Timestamp,
    ) -> Option<RangeInclusive<Timestamp>> {
        let (from, until) = self.last_disabled_period?;
        let certain_from = from.saturating_add(EVENT_TIME_MARGIN).ok()?;
        let certain_until = until.saturating_sub(EVENT_TIME_MARGIN).ok()?;
        let possible_until = until.saturating_add(EVENT_TIME_MARGIN).ok()?;
        let retained_from = retained_since.clamp(self.possible_from()?, certain_from);
        let latest = if retained_since <= certain_until {
            possible_until
        } else {
            certain_until
        };
        let earliest = retained_from.max(since);
        (earliest <= latest).then_some(earliest..=latest)
    }

    /// Clears the disabled period after its events from `since` on were enqueued, if the whole
    /// period is covered and no request in flight can add an event to it. Returns whether it was
    /// cleared.
    pub fn clear_disabled_period(&mut self, since: Timestamp, now: Timestamp) -> bool {
        let covers_all = self
            .possible_from()
            .is_some_and(|earliest| since <= earliest);
        let is_over = self.last_disabled_period.is_some_and(|(_, until)| {
            let possible_until = until.saturating_add(EVENT_TIME_MARGIN);
            possible_until.is_ok_and(|possible_until| possible_until < now)
        });
        if covers_all && is_over {
            self.last_disabled_period = None;
        }
        covers_all && is_over
    }

    /// The earliest time of an event that may have been missed: a margin before the webhook was
    /// disabled, but after its registration.
    fn possible_from(&self) -> Option<Timestamp> {
        let (from, _) = self.last_disabled_period?;
        let registered = self
            .created_at
            .saturating_add(SignedDuration::from_micros(1));
        let earlier = from.saturating_sub(EVENT_TIME_MARGIN);
        Some(from.min(earlier.ok()?.max(registered.ok()?)))
    }
}

/// Longer than any request. The events of a request have the time of its start, but the webhooks
/// are looked up at its end, and may have been disabled or enabled in between.
const EVENT_TIME_MARGIN: SignedDuration = SignedDuration::from_secs(30);

/// When and why a webhook was disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disabled {
    pub at: Timestamp,
    pub reason: DisabledReason,
}

named_enum! {
    /// Why a webhook was disabled.
    pub enum DisabledReason("reason", ", ") {
        /// Disabled by its API client.
        Client = "client",
        /// Disabled by the platform's operator.
        Operator = "operator",
        /// The receiver answered 410.
        Gone = "gone",
        /// Every attempt failed for too long.
        Failing = "failing",
    }
}

/// Limit of webhooks per API client.
pub const MAX_PER_CLIENT: usize = 100;

/// A webhook's signing secret: 32 bytes, displayed as padded Base64. The text is the key of the
/// platform signature, the bytes are the key of the Standard Webhooks signature.
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

    /// The secret as displayed: 44 characters.
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

    #[test]
    fn a_secret_is_shown_as_padded_base64_and_never_logged() {
        let secret = Secret::from_bytes(&[0xff; 32]).unwrap();

        assert_eq!(secret.as_bytes(), [0xff; 32]);
        assert_eq!(secret.to_text(), format!("{}8=", "/".repeat(42)));
        assert_eq!(format!("{secret:?}"), "Secret");
        assert!(Secret::from_bytes(&[0xff; 31]).is_none());
    }

    #[test]
    fn a_reason_is_read_as_written() {
        let texts = ["client", "operator", "gone", "failing"];
        assert_eq!(DisabledReason::ALL.map(DisabledReason::as_str), texts);
        assert_eq!(texts.map(str::parse), DisabledReason::ALL.map(Ok));
        assert!("asleep".parse::<DisabledReason>().is_err());
    }

    /// A webhook registered, disabled and enabled at these seconds.
    fn webhook(registered: i64, disabled: i64, enabled: i64) -> Webhook {
        let mut webhook = Webhook {
            id: WebhookId::new(),
            store_id: StoreId::new(),
            api_client_id: ApiClientId::new(),
            event: "delivery.completed".to_owned(),
            url: String::new(),
            host: String::new(),
            created_at: second(registered),
            overlap_ends_at: None,
            disabled: None,
            last_disabled_period: None,
        };
        assert!(webhook.disable(Disabled {
            at: second(disabled),
            reason: DisabledReason::Client,
        }));
        assert!(webhook.enable(second(enabled)));
        webhook
    }

    #[test]
    fn only_the_operators_reason_replaces_another_and_the_time_stays() {
        for (first, second, expected) in [
            (
                DisabledReason::Client,
                DisabledReason::Operator,
                DisabledReason::Operator,
            ),
            (
                DisabledReason::Gone,
                DisabledReason::Operator,
                DisabledReason::Operator,
            ),
            (
                DisabledReason::Operator,
                DisabledReason::Operator,
                DisabledReason::Operator,
            ),
            (
                DisabledReason::Operator,
                DisabledReason::Client,
                DisabledReason::Operator,
            ),
            (
                DisabledReason::Client,
                DisabledReason::Failing,
                DisabledReason::Client,
            ),
        ] {
            let mut webhook = webhook(0, 1, 2);
            let at = self::second(3);
            assert!(webhook.disable(Disabled { at, reason: first }));

            let is_changed = webhook.disable(Disabled {
                at: self::second(4),
                reason: second,
            });

            assert_eq!(is_changed, expected != first, "{first:?} {second:?}");
            let reason = expected;
            assert_eq!(webhook.disabled, Some(Disabled { at, reason }));
        }
    }

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn events_around_the_ends_of_the_disabled_period_may_have_been_missed() {
        for (since, from) in [(second(0), 70), (second(90), 90), (Timestamp::MIN, 70)] {
            let missed = webhook(0, 100, 200).missed_period(since, second(0));
            assert_eq!(missed, Some(second(from)..=second(230)));
        }
        let missed = webhook(0, 100, 200).missed_period(second(231), second(0));
        assert_eq!(missed, None);
    }

    #[test]
    fn uncertain_events_older_than_the_retained_notifications_are_left_out() {
        for (retained_since, from, until) in [
            (70, 70, 230),
            (71, 71, 230),
            (129, 129, 230),
            (130, 130, 230),
            (170, 130, 230),
            (171, 130, 170),
            (1_000_000, 130, 170),
        ] {
            let missed = webhook(0, 100, 200).missed_period(second(0), second(retained_since));
            let expected = second(from)..=second(until);
            assert_eq!(missed, Some(expected), "{retained_since}");
        }
        let missed = webhook(0, 100, 159).missed_period(second(0), second(1_000_000));
        assert_eq!(missed, None, "the margins overlap");
    }

    #[test]
    fn no_event_before_the_registration_was_missed() {
        let after = second(90) + SignedDuration::from_micros(1);
        let missed = webhook(90, 100, 200).missed_period(second(0), second(0));
        assert_eq!(missed, Some(after..=second(230)));
        let missed = webhook(100, 100, 200).missed_period(second(0), second(0));
        assert_eq!(missed, Some(second(100)..=second(230)));
        let never_disabled = Webhook {
            last_disabled_period: None,
            ..webhook(0, 1, 2)
        };
        assert_eq!(never_disabled.missed_period(second(0), second(0)), None);
    }

    #[test]
    fn the_disabled_period_is_cleared_once_all_its_events_are_enqueued() {
        for (since, now, is_cleared) in [
            (70, 231, true),
            (0, 1_000_000, true),
            (71, 1_000_000, false),
            // A request may still be in flight.
            (0, 230, false),
        ] {
            let mut webhook = webhook(0, 100, 200);
            assert_eq!(
                webhook.clear_disabled_period(second(since), second(now)),
                is_cleared
            );
            assert_eq!(
                webhook.last_disabled_period.is_none(),
                is_cleared,
                "{since}, {now}"
            );
            assert!(!is_cleared || !webhook.clear_disabled_period(second(since), second(now)));
        }
    }
}
