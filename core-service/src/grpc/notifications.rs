//! Notifications: the dispatchers' streams. Each has a loop of its own that claims while there
//! is credit, and records what comes back.

use std::{collections::HashMap, pin::Pin, sync::Arc, time::Duration};

use futures_util::Stream;
use jiff::SignedDuration;
use proto::iri::Collection;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming, metadata::MetadataMap};
use uuid::Uuid;

use super::Core;
use crate::{
    domain::{api_client::Scope, id::NotificationId, notification::Outcome, webhook::Secret},
    error::{Error, Unauthenticated},
    random,
    storage::{
        self,
        notifications::{Claimed, Report},
    },
    vault::Purpose,
};

/// Longer than the longest attempt, its queueing and its report together.
const LEASE: Duration = Duration::from_mins(1);

/// How many are claimed by one transaction at most.
const BATCH: u32 = 128;

/// How often the database is asked without a bell: soon after there was something, then ever
/// more rarely. It finds what other processes' bells announce, and what a schedule makes due.
const SHORTEST_POLL: Duration = Duration::from_millis(50);
const LONGEST_POLL: Duration = Duration::from_secs(1);

/// How often it is asked whether a stream's client still may hold it.
const PERMISSION_CHECK: Duration = Duration::from_secs(30);

type Responses = mpsc::Sender<Result<proto::StreamResponse, Status>>;

/// So that the stream type can be named without its generics.
type ResponseStream =
    Pin<Box<dyn Stream<Item = Result<proto::StreamResponse, Status>> + Send + 'static>>;

/// [`Core`] behind the `Arc` that its streams' loops share.
pub(crate) struct Notifications(pub(crate) Arc<Core>);

#[tonic::async_trait]
impl proto::notifications_server::Notifications for Notifications {
    type StreamStream = ResponseStream;

    async fn stream(
        &self,
        request: Request<Streaming<proto::StreamRequest>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        let core = Arc::clone(&self.0);
        let token = request.metadata().clone();
        core.authenticate(&token)
            .await?
            .require(Scope::Notifications)?;

        let (responses, stream) = mpsc::channel(4);
        let requests = request.into_inner();
        self.0.loops.spawn(async move {
            let served = tokio::select! {
                served = serve(&core, requests, &responses) => served,
                refused = still_permitted(&core, &token) => refused,
                // Also while the dispatcher reads nothing.
                () = core.shutdown.cancelled() => Ok(()),
            };
            if let Err(error) = served {
                // A dispatcher that has gone away hears nothing; its leases end by themselves.
                let _ = responses.try_send(Err(error.into()));
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }
}

/// Ends when the token's client may hold a stream no more; that its token has expired since the
/// stream was opened does not matter.
async fn still_permitted(core: &Core, token: &MetadataMap) -> Result<(), Error> {
    loop {
        tokio::time::sleep(PERMISSION_CHECK).await;
        match core.authenticate(token).await {
            Ok(caller) => caller.require(Scope::Notifications)?,
            Err(Error::Unauthenticated(Unauthenticated::ExpiredToken)) => {}
            Err(error @ Error::Unauthenticated(_)) => return Err(error),
            // The database may be away for a while; that takes nothing from anybody.
            Err(_) => {}
        }
    }
}

/// Serves a stream until its dispatcher half-closes or goes away.
async fn serve(
    core: &Core,
    mut requests: Streaming<proto::StreamRequest>,
    responses: &Responses,
) -> Result<(), Error> {
    let mut bell = core.bell.subscribe();
    let mut credit: u32 = 0;
    // What was handed out and not reported, with its lease.
    let mut held = HashMap::new();
    let mut poll = SHORTEST_POLL;
    loop {
        tokio::select! {
            // What is done is recorded before more is handed out.
            biased;
            request = requests.message() => {
                let Ok(request) = request else {
                    return Ok(());
                };
                let Some(request) = request else {
                    return Ok(());
                };
                credit = credit.saturating_add(request.credit);
                if !request.outcomes.is_empty() {
                    for outcome in &request.outcomes {
                        if held.get(&outcome.name) == Some(&outcome.lease_token) {
                            held.remove(&outcome.name);
                        }
                    }
                    let recorded = core.record(&request.outcomes).await?;
                    let response = proto::StreamResponse {
                        recorded,
                        ..proto::StreamResponse::default()
                    };
                    if responses.send(Ok(response)).await.is_err() {
                        return Ok(());
                    }
                }
                if request.finished {
                    credit = 0;
                    core.release(std::mem::take(&mut held)).await?;
                }
                poll = SHORTEST_POLL;
            }
            _ = bell.changed(), if credit > 0 => poll = SHORTEST_POLL,
            () = core.clock.moved(), if credit > 0 => poll = SHORTEST_POLL,
            () = tokio::time::sleep(poll), if credit > 0 => {
                poll = (poll * 2).min(LONGEST_POLL);
            }
        }
        while credit > 0 {
            let Some(claimed) = core.claim(credit.min(BATCH)).await? else {
                break;
            };
            let count = u32::try_from(claimed.len()).unwrap_or(u32::MAX);
            credit = credit.saturating_sub(count);
            for notification in &claimed {
                held.insert(notification.name.clone(), notification.lease_token.clone());
            }
            poll = SHORTEST_POLL;
            let response = proto::StreamResponse {
                notifications: claimed,
                ..proto::StreamResponse::default()
            };
            if responses.send(Ok(response)).await.is_err() {
                return Ok(());
            }
        }
    }
}

impl Core {
    /// Takes due notifications under a lease; none when nothing was due.
    async fn claim(&self, most: u32) -> Result<Option<Vec<proto::Notification>>, Error> {
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
    async fn record(&self, outcomes: &[proto::Outcome]) -> Result<Vec<proto::Recorded>, Error> {
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
    async fn release(&self, held: HashMap<String, String>) -> Result<(), Error> {
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
