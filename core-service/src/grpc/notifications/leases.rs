//! What the streams hand out and take back, as writes: claims, outcomes, and leases given back.

use std::{collections::HashMap, time::Duration};

use jiff::SignedDuration;
use proto::iri::Collection;
use uuid::Uuid;

use crate::{
    domain::{id::NotificationId, notification::Outcome, webhook::Secret},
    error::Error,
    grpc::Core,
    random,
    storage::{
        self,
        notifications::{Claimed, Report},
    },
    vault::Purpose,
};

/// Longer than the longest attempt, its queueing and its report together.
const LEASE: Duration = Duration::from_mins(1);

impl Core {
    /// Takes due notifications under a lease; none when nothing was due.
    pub(super) async fn claim(&self, most: u32) -> Result<Option<Vec<proto::Notification>>, Error> {
        let now = self.clock.now();
        if !storage::notifications::is_any_due(self.storage.reader(), now).await? {
            return Ok(None);
        }
        let lease_token = Uuid::now_v7();
        let claim = self
            .storage
            .write(move |transaction| {
                Box::pin(async move {
                    let lease = (lease_token, LEASE);
                    Ok(storage::notifications::claim(transaction, most.into(), lease, now).await?)
                })
            })
            .await?;
        let mut notifications = Vec::with_capacity(claim.claimed.len());
        let mut unreadable = Vec::new();
        for claimed in claim.claimed {
            let id = claimed.id;
            match self.notification(claimed, lease_token) {
                Ok(notification) => notifications.push(notification),
                Err(error) => {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        notification.id = %id,
                        "a notification cannot be sent"
                    );
                    unreadable.push(unsent(id, lease_token));
                }
            }
        }
        if !unreadable.is_empty() {
            self.record_reports(unreadable).await?;
        }
        Ok(claim.found_any.then_some(notifications))
    }

    fn notification(
        &self,
        claimed: Claimed,
        lease_token: Uuid,
    ) -> Result<proto::Notification, Error> {
        let target = claimed.target;
        let secret = self.vault.unseal(
            Purpose::WebhookSecret,
            target.webhook_id.0.as_bytes(),
            &target.sealed_secret,
        )?;
        let secret = Secret::from_bytes(&secret).ok_or_else(|| {
            storage::Error::inconsistent("webhooks", "a secret of another length")
        })?;
        Ok(proto::Notification {
            name: Collection::Notifications.name(claimed.id),
            lease_token: lease_token.to_string(),
            lease: prost_types::Duration::try_from(LEASE).ok(),
            url: target.url,
            secrets: vec![secret.to_text()],
            event: claimed.event,
            object: Collection::Deliveries.name(claimed.delivery_id),
            attempt: claimed.attempts.saturating_add(1),
        })
    }

    /// Records outcomes first; the attempts, for people to look at, follow as well as they can.
    pub(super) async fn record(
        &self,
        outcomes: &[proto::Outcome],
    ) -> Result<Vec<proto::Recorded>, Error> {
        let recorded = outcomes.iter().map(recorded).collect();
        let reports: Vec<_> = outcomes.iter().filter_map(report).collect();
        self.record_reports(reports).await?;
        Ok(recorded)
    }

    async fn record_reports(&self, reports: Vec<Report>) -> Result<(), Error> {
        let now = self.clock.now();
        let attempts = self
            .storage
            .write(move |transaction| {
                let reports = reports.clone();
                Box::pin(async move {
                    Ok(storage::notifications::record(transaction, &reports, now).await?)
                })
            })
            .await?;
        if attempts.is_empty() {
            return Ok(());
        }
        let logged = self
            .storage
            .write(move |transaction| {
                let attempts = attempts.clone();
                Box::pin(async move {
                    storage::notifications::insert_attempts(transaction, &attempts, now).await?;
                    Ok(())
                })
            })
            .await;
        if let Err(error) = logged {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "attempts were recorded but not logged"
            );
        }
        Ok(())
    }

    /// Makes pending again what a dispatcher gave back unsent.
    pub(super) async fn release(&self, held: HashMap<String, String>) -> Result<(), Error> {
        let held: Vec<_> = held
            .iter()
            .filter_map(|(name, lease_token)| {
                let id = Collection::Notifications.id(name)?;
                Some((NotificationId(id), Uuid::try_parse(lease_token).ok()?))
            })
            .collect();
        if held.is_empty() {
            return Ok(());
        }
        self.storage
            .write(move |transaction| {
                let held = held.clone();
                Box::pin(async move {
                    storage::notifications::release(transaction, &held).await?;
                    Ok(())
                })
            })
            .await?;
        self.bell.send_replace(());
        Ok(())
    }

    /// Makes pending again what dispatchers took and never reported, until told to stop.
    pub(crate) async fn release_expired_leases(&self) {
        loop {
            tokio::select! {
                () = self.shutdown.cancelled() => return,
                () = tokio::time::sleep(LEASE / 12) => {}
                () = self.clock.moved() => {}
            }
            match self.release_expired().await {
                Ok(0) => {}
                Ok(count) => {
                    tracing::info!(count, "leases ended without an outcome");
                    self.bell.send_replace(());
                }
                Err(error) => tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "leases could not be looked at"
                ),
            }
        }
    }

    async fn release_expired(&self) -> Result<u64, Error> {
        if !storage::notifications::is_any_expired(self.storage.reader()).await? {
            return Ok(0);
        }
        self.storage
            .write(|transaction| {
                Box::pin(
                    async move { Ok(storage::notifications::release_expired(transaction).await?) },
                )
            })
            .await
    }
}

fn recorded(outcome: &proto::Outcome) -> proto::Recorded {
    proto::Recorded {
        name: outcome.name.clone(),
        lease_token: outcome.lease_token.clone(),
    }
}

/// An outcome that names no notification or lease of ours is as one whose lease is over.
fn report(outcome: &proto::Outcome) -> Option<Report> {
    let id = NotificationId(Collection::Notifications.id(&outcome.name)?);
    let lease_token = Uuid::try_parse(&outcome.lease_token).ok()?;
    let status = outcome.status.and_then(|status| u16::try_from(status).ok());
    let failure = failure_name(outcome.failure, status);
    let retry_after = outcome
        .retry_after
        .as_ref()
        .map(|duration| SignedDuration::from_secs(duration.seconds));
    let duration = outcome.duration.unwrap_or_default();
    Some(Report {
        id,
        lease_token,
        outcome: match failure {
            None => Outcome::Delivered,
            Some(_) => Outcome::Failed {
                status,
                retry_after,
            },
        },
        failure,
        status,
        duration: duration
            .seconds
            .saturating_mul(1_000_000)
            .saturating_add(i64::from(duration.nanos) / 1_000),
        // PostgreSQL keeps no NUL in a text.
        answer: outcome.answer.replace('\0', "\u{fffd}"),
        jitter: random::below(u64::MAX),
    })
}

/// A notification that could not even be handed out, as a failed attempt: the schedule goes on
/// and ends it.
fn unsent(id: NotificationId, lease_token: Uuid) -> Report {
    Report {
        id,
        lease_token,
        outcome: Outcome::Failed {
            status: None,
            retry_after: None,
        },
        status: None,
        failure: Some("secret"),
        duration: 0,
        answer: String::new(),
        jitter: random::below(u64::MAX),
    }
}

/// None only for what was surely delivered: a failure of a kind that a newer dispatcher knows
/// is one all the same.
fn failure_name(failure: i32, status: Option<u16>) -> Option<&'static str> {
    use proto::outcome::Failure;
    let Ok(failure) = Failure::try_from(failure) else {
        return Some("unknown");
    };
    match failure {
        Failure::Unspecified if matches!(status, Some(200..=299)) => None,
        Failure::Unspecified => Some("unknown"),
        Failure::Dns => Some("dns"),
        Failure::AddressRefused => Some("address_refused"),
        Failure::Connect => Some("connect"),
        Failure::Tls => Some("tls"),
        Failure::Timeout => Some("timeout"),
        Failure::Status => Some("status"),
        Failure::Protocol => Some("protocol"),
    }
}
