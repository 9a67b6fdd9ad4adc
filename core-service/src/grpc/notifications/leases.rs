//! What the streams hand out, as writes: claims, and leases given back.

use std::time::Duration;

use domain::{fairness::Room, id::NotificationId};
use jiff::Timestamp;
use proto::iri::Collection;
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    LEASE, STATEMENT,
    account::Held,
    outcomes::unsent,
    streams::{Line, Unsent},
};
use storage::{
    self, Storage,
    notifications::{Claim, Claimed, Report},
};

use crate::{error::Error, grpc::Core};

/// How many are claimed by one transaction at most.
const BATCH: u32 = 256;

/// What a claim found.
pub(super) enum Found {
    /// Nothing is due.
    Nothing,
    /// There is no credit, or what is due is owed to webhooks without a free place.
    NoPlace,
    /// What is leased now, and whether there may be more.
    Some(HandedOut, bool),
}

/// What is under a lease, as it goes on.
#[derive(Debug, Default)]
pub(super) struct HandedOut {
    pub(super) notifications: Vec<proto::Notification>,
    /// How those failed that can't be sent.
    pub(super) unreadable: Vec<Report>,
}

/// A claim under way for a stream. When it ends, what was set aside for it is free again, or
/// held.
pub(super) struct Claiming<'a> {
    line: &'a Line,
    room: Room,
    lease_token: Uuid,
    leased_at: Instant,
    held: Vec<(NotificationId, Held)>,
}

impl<'a> Claiming<'a> {
    /// Begins a claim of so many at most; none without credit.
    pub(super) fn begin(line: &'a Line, most: u32) -> Option<Self> {
        let room = line.account().begin_claim(most)?;
        Some(Self {
            line,
            room,
            lease_token: Uuid::now_v7(),
            leased_at: Instant::now(),
            held: Vec::new(),
        })
    }

    /// What may be claimed, and under which lease.
    pub(super) fn terms(&self) -> (Room, (Uuid, Duration)) {
        (self.room, (self.lease_token, LEASE))
    }
}

impl Drop for Claiming<'_> {
    fn drop(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.line.account().end_claim(&self.room, held);
    }
}

/// Deals with the leases that a dead process left, where there is one process at a time. That of
/// an all-in-one sent what they were for itself; another's dispatchers may be at it still.
pub(crate) async fn take_over(
    storage: &Storage,
    all_in_one: bool,
    now: Timestamp,
) -> Result<(), Error> {
    storage
        .write(move |transaction| {
            Box::pin(async move {
                if all_in_one {
                    storage::notifications::release_all(transaction, now).await?;
                } else {
                    storage::notifications::renew_all(transaction, LEASE).await?;
                }
                storage::events::give_up(transaction, None).await?;
                Ok(())
            })
        })
        .await
}

impl Core {
    /// Takes due notifications under a lease, for a stream.
    pub(super) async fn claim(&self, line: &Line) -> Result<Found, Error> {
        let now = self.clock.now();
        // A look costs no transaction; and what is born meanwhile still finds the credit.
        let Some(room) = line.account().room(BATCH) else {
            return Ok(Found::NoPlace);
        };
        let reader = self.storage.reader();
        if !storage::notifications::is_any_turn(reader, &room, now).await? {
            let is_any_due = storage::notifications::is_any_due(reader, now).await?;
            return Ok(if is_any_due {
                Found::NoPlace
            } else {
                Found::Nothing
            });
        }
        let Some(claiming) = Claiming::begin(line, BATCH) else {
            return Ok(Found::NoPlace);
        };
        let (room, lease) = claiming.terms();
        let claim = self.storage.write(move |transaction| {
            Box::pin(async move {
                Ok::<_, Error>(storage::notifications::claim(transaction, &room, lease, now).await?)
            })
        });
        let claim = claim.await?;
        Ok(self.found(claiming, claim))
    }

    /// What a claim found, on its way out.
    pub(super) fn found(&self, mut claiming: Claiming<'_>, claim: Claim) -> Found {
        let Claim { claimed, is_all } = claim;
        if claimed.is_empty() {
            return Found::NoPlace;
        }
        let (line, lease_token, leased_at) =
            (claiming.line, claiming.lease_token, claiming.leased_at);
        claiming.held = claimed
            .iter()
            .map(|claimed| {
                let held = Held {
                    lease_token,
                    webhook_id: claimed.target.webhook_id,
                    standing: claimed.standing,
                };
                (claimed.id, held)
            })
            .collect();
        drop(claiming);
        let claimed = claimed.into_iter().map(|claimed| (claimed, lease_token));
        Found::Some(self.notifications(line, claimed, leased_at), !is_all)
    }

    /// Notifications as they are sent down a stream. One that can't be, because its secret can't
    /// be read, counts as a failed attempt, to be recorded once the others are on their way.
    pub(super) fn notifications(
        &self,
        line: &Line,
        claimed: impl IntoIterator<Item = (Claimed, Uuid)>,
        leased_at: Instant,
    ) -> HandedOut {
        let lease = LEASE.saturating_sub(leased_at.elapsed());
        let mut handed_out = HandedOut::default();
        for (claimed, lease_token) in claimed {
            let id = claimed.id;
            match self.notification(claimed, lease_token, lease) {
                Ok(notification) => handed_out.notifications.push(notification),
                Err(error) => {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        notification.id = %id,
                        "a notification cannot be sent"
                    );
                    line.account().give_place_back(id, lease_token);
                    handed_out.unreadable.push(unsent(id, lease_token));
                }
            }
        }
        handed_out
    }

    /// Records what could not be sent. Where that fails, it is found again when its lease is over.
    pub(super) async fn record_unreadable(&self, unreadable: &[Report]) {
        if let Err(error) = self.record(unreadable).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "notifications that cannot be sent could not be recorded"
            );
        }
    }

    fn notification(
        &self,
        claimed: Claimed,
        lease_token: Uuid,
        lease: Duration,
    ) -> Result<proto::Notification, Error> {
        let target = claimed.target;
        let secrets = self.live_secrets(target.webhook_id, &target.secrets)?;
        Ok(proto::Notification {
            name: Collection::Notifications.name(claimed.id),
            lease_token: lease_token.to_string(),
            lease: prost_types::Duration::try_from(lease).ok(),
            url: target.url,
            secrets,
            event: claimed.event,
            object: Collection::Deliveries.name(claimed.delivery_id),
            attempt: claimed.attempts.saturating_add(1),
        })
    }

    /// Makes pending again what was leased and is not sent.
    pub(super) async fn release(&self, held: Vec<(NotificationId, Uuid)>) -> Result<(), Error> {
        let now = self.clock.now();
        let mut released = 0;
        for held in held.chunks(STATEMENT) {
            let held = held.to_vec();
            released += self
                .storage
                .write(move |transaction| {
                    let held = held.clone();
                    Box::pin(async move {
                        Ok::<_, Error>(
                            storage::notifications::release(transaction, &held, now).await?,
                        )
                    })
                })
                .await?;
        }
        if released > 0 {
            self.bell.send_replace(());
        }
        Ok(())
    }

    /// Makes pending again what dispatchers took and never reported, and what was born to a
    /// stream and not sent, until told to stop and all streams have ended.
    pub(crate) async fn release_leases(&self, mut unsent: Unsent) {
        let mut moves = self.clock.moves();
        let mut look = tokio::time::interval(LEASE / 12);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let mut given_back = Vec::new();
            tokio::select! {
                first = unsent.recv() => given_back.extend(first),
                () = self.streams_ended.cancelled() => {
                    given_back.extend(std::iter::from_fn(|| unsent.try_recv().ok()));
                    self.release_unsent(given_back).await;
                    return;
                }
                _ = look.tick() => self.release_expired().await,
                () = moves.next() => self.release_expired().await,
            }
            given_back.extend(std::iter::from_fn(|| unsent.try_recv().ok()));
            self.release_unsent(given_back).await;
        }
    }

    async fn release_unsent(&self, given_back: Vec<(NotificationId, Uuid)>) {
        if let Err(error) = self.release(given_back).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "leases could not be given back: they will end"
            );
        }
    }

    async fn release_expired(&self) {
        match self.try_to_release_expired().await {
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

    async fn try_to_release_expired(&self) -> Result<u64, Error> {
        if !storage::notifications::is_any_expired(self.storage.reader()).await? {
            return Ok(0);
        }
        let now = self.clock.now();
        self.storage
            .write(move |transaction| {
                Box::pin(async move {
                    Ok(storage::notifications::release_expired(transaction, now).await?)
                })
            })
            .await
    }
}
