//! Recovers a webhook: resends failed notifications and enqueues events that it missed while it was
//! disabled.

use domain::{
    api_client::Scope,
    id::NotificationId,
    violation::Violations,
    webhook::{Webhook, WebhookKey},
};
use jiff::Timestamp;
use storage::{
    Session,
    pages::{Cursor, Start},
    webhook_notifications,
};
use tonic::Response;
use uuid::Uuid;

use super::{enable::require_enabled, lock, record};
use crate::{
    auth::caller::Caller,
    error::Error,
    idempotency::{Step, begin_or_replay},
    messages::{self, pages},
    services::Services,
};

/// The most notifications that one transaction enqueues.
const BATCH: u64 = 500;

/// The progress of a recovery, stored between its transactions.
#[derive(Clone, PartialEq, prost::Message)]
struct Progress {
    #[prost(uint64, tag = "1")]
    recovered: u64,
    /// A page token: the last failed notification that was resent, in order of creation; empty
    /// before the first.
    #[prost(string, tag = "2")]
    failed_after: String,
    /// The event number after which the search for missed events continues; absent while failed
    /// notifications are left.
    #[prost(int64, optional, tag = "3")]
    missed_after: Option<i64>,
}

#[derive(Clone, Copy, Debug)]
struct RecoveryPeriod {
    since: Timestamp,
    /// Notifications that finished earlier may have been removed.
    retained_since: Timestamp,
    now: Timestamp,
}

impl Services {
    /// Resends what failed since an instant, and enqueues what happened since then while the
    /// webhook was disabled. Takes several transactions; after a failure, repeat it to continue.
    pub(super) async fn recover_events(
        &self,
        caller: &Caller,
        mut request: proto::RecoverWebhookRequest,
    ) -> Result<Response<proto::RecoverWebhookResponse>, Error> {
        let idempotency = request.idempotency.take();
        let request_key =
            begin_or_replay!(self, caller, "RecoverWebhook", &request.name, idempotency);
        let (webhook, store) = self.webhook_of(caller, Scope::Admin, &request.name).await?;
        let mut violations = messages::read_violations(request.violations);
        let since = read_since(request.since, &mut violations);
        let Some(since) = since.filter(|_| violations.is_empty()) else {
            return Err(Error::Invalid(violations));
        };
        require_enabled(&webhook)?;

        let key = webhook.key();
        let time_zone = store.time_zone_name().to_owned();
        let mut progress = Progress::default();
        // In the first transaction.
        let mut audit = caller.audit.clone();
        loop {
            let (time_zone, audit) = (time_zone.clone(), std::mem::take(&mut audit));
            let now = self.clock.now();
            let retained_since = now.saturating_sub(self.config.webhooks.notification_retention);
            let period = RecoveryPeriod {
                since,
                retained_since: retained_since.unwrap_or(Timestamp::MIN),
                now,
            };
            let step = self
                .idempotency
                .write_step(
                    request_key,
                    progress,
                    move |transaction, progress| async move {
                        record(&audit, &transaction, key).await?;
                        let batch = recover_batch(&transaction, key, period, progress);
                        Ok(match batch.await? {
                            Step::Unfinished(progress) => Step::Unfinished(progress),
                            Step::Finished(recovered) => {
                                Step::Finished(proto::RecoverWebhookResponse {
                                    since: Some(messages::timestamp(since)),
                                    recovered,
                                    time_zone,
                                })
                            }
                        })
                    },
                )
                .await?;
            self.queue.streams.wake();
            match step {
                Step::Unfinished(so_far) => progress = so_far,
                Step::Finished(reply) => return Ok(reply),
            }
        }
    }
}

/// Recovers one batch. The last one returns the total number of notifications.
async fn recover_batch(
    transaction: &Session,
    key: WebhookKey,
    period: RecoveryPeriod,
    progress: Progress,
) -> Result<Step<Progress, u64>, Error> {
    // The lock serializes concurrent recoveries, which would enqueue notifications twice.
    let (mut webhook, _) = lock(transaction, key).await?;
    // It may have been disabled since it was read.
    require_enabled(&webhook)?;
    let Some(number) = progress.missed_after else {
        return recover_failed(transaction, &webhook, period, progress)
            .await
            .map(Step::Unfinished);
    };
    let (count, last) = recover_missed(transaction, &webhook, period, number).await?;
    let recovered = progress.recovered.saturating_add(count);
    // The disabled period is cleared when all its events are enqueued: a later recovery would
    // enqueue them again once retention has removed their notifications.
    if last.is_none() && webhook.clear_disabled_period(period.since, period.now) {
        storage::webhooks::save_disabled_period(transaction, &webhook).await?;
    }
    Ok(match last {
        None => Step::Finished(recovered),
        Some(number) => Step::Unfinished(Progress {
            recovered,
            missed_after: Some(number),
            ..progress
        }),
    })
}

/// Resends a batch of failed notifications, each at most once: it may fail again before the
/// recovery is finished.
async fn recover_failed(
    transaction: &Session,
    webhook: &Webhook,
    period: RecoveryPeriod,
    progress: Progress,
) -> Result<Progress, Error> {
    let after = match pages::decode(&progress.failed_after) {
        Some(Start::NewerThan(cursor)) => cursor,
        _ => Cursor {
            created_at: period.since,
            id: Uuid::nil(),
        },
    };
    let failed =
        webhook_notifications::failed_after(transaction, webhook.key(), after, BATCH).await?;
    let Some(last) = failed.last().copied() else {
        return Ok(Progress {
            missed_after: Some(0),
            ..progress
        });
    };
    let ids = failed.iter().map(|cursor| NotificationId(cursor.id));
    let count = webhook_notifications::resend(transaction, webhook.key(), ids, period.now).await?;
    Ok(Progress {
        recovered: progress.recovered.saturating_add(count),
        failed_after: pages::encode(Start::NewerThan(last)),
        missed_after: None,
    })
}

/// Enqueues the missed events of one page of the log. Returns how many, and the number to continue
/// after.
async fn recover_missed(
    transaction: &Session,
    webhook: &Webhook,
    period: RecoveryPeriod,
    after: i64,
) -> Result<(u64, Option<i64>), Error> {
    let Some(missed) = webhook.missed_period(period.since, period.retained_since) else {
        return Ok((0, None));
    };
    let page =
        webhook_notifications::missed_events(transaction, webhook, &missed, after, BATCH).await?;
    if !page.missed.is_empty() {
        webhook_notifications::enqueue_missed(transaction, webhook, &page.missed, period.now)
            .await?;
    }
    let count = u64::try_from(page.missed.len()).unwrap_or(u64::MAX);
    Ok((count, page.next_after))
}

fn read_since(
    since: Option<prost_types::Timestamp>,
    violations: &mut Violations,
) -> Option<Timestamp> {
    let Some(since) = since else {
        violations.add("since", "REQUIRED", "is required");
        return None;
    };
    let parsed = Timestamp::new(since.seconds, since.nanos);
    violations.check("since", "OUT_OF_RANGE", parsed)
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use domain::notification::{Failure, Outcome};
    use jiff::SignedDuration;
    use storage::{
        Storage, fixture,
        notifications::{AttemptReport, Lease},
    };

    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    /// A webhook with notifications whose first attempt has failed.
    async fn failed(storage: &Storage, count: usize) -> Webhook {
        let webhook = fixture::webhook(NOW);
        let lease = Duration::from_mins(1);
        let leases = fixture::leased_notifications(storage, &webhook, count, lease).await;
        let report = |lease: Lease| AttemptReport {
            lease,
            outcome: Outcome::Failed {
                failure: Failure::Timeout,
                status: None,
                retry_after: None,
            },
            status: None,
            duration: Duration::ZERO,
            response_body: String::new(),
            jitter: 0,
        };
        let reports: Arc<[_]> = leases.into_iter().map(report).collect();
        let written = storage.write(move |transaction| async move {
            let disable_after = SignedDuration::from_hours(1);
            storage::notifications::apply_outcomes(&transaction, &reports, disable_after, NOW).await
        });
        assert_eq!(written.await.unwrap().attempts.len(), count);
        webhook
    }

    #[tokio::test]
    async fn a_recovery_continues_after_the_last_notification_that_it_has_resent() {
        let (_directory, storage) = fixture::sqlite().await;
        let webhook = failed(&storage, 3).await;
        let period = RecoveryPeriod {
            since: NOW,
            retained_since: NOW,
            now: NOW,
        };
        let start = Cursor {
            created_at: NOW,
            id: Uuid::nil(),
        };
        let all = webhook_notifications::failed_after(storage.reader(), webhook.key(), start, 3);
        let all = all.await.unwrap();
        let recover = |progress: Progress| {
            let webhook = webhook.clone();
            storage.write(move |transaction| async move {
                recover_failed(&transaction, &webhook, period, progress).await
            })
        };

        let first_is_resent = Progress {
            recovered: 1,
            failed_after: pages::encode(Start::NewerThan(all[0])),
            missed_after: None,
        };
        let progress = recover(first_is_resent).await.unwrap();

        let all_are_resent = Progress {
            recovered: 3,
            failed_after: pages::encode(Start::NewerThan(all[2])),
            missed_after: None,
        };
        assert_eq!(progress, all_are_resent);
        let progress = recover(progress).await.unwrap();
        let ended = Progress {
            missed_after: Some(0),
            ..all_are_resent
        };
        assert_eq!(progress, ended);
    }
}
