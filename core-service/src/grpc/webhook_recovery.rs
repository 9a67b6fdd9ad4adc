//! What failed to reach a webhook, or passed it by, owed again.

use domain::{
    id::{NotificationId, StoreId, WebhookId},
    violation::Violations,
    webhook::Webhook,
};
use jiff::Timestamp;
use proto::iri::Collection;
use tonic::Response;
use uuid::Uuid;

use super::{
    Core, caller::Caller, idempotency::Step, messages, pages, planning,
    webhook_notifications::require_enabled,
};
use storage::{
    self, DatabaseTransaction,
    pages::{Place, Start},
    webhook_notifications,
};

use crate::error::Error;

/// How many notifications are made due by one transaction.
const BATCH: u64 = 500;

/// How far it is.
#[derive(Clone, PartialEq, prost::Message)]
struct Progress {
    #[prost(uint64, tag = "1")]
    recovered: u64,
    /// Behind which place, in the order of their creation, the failed ones are yet to be owed
    /// again: a page token. None before the first.
    #[prost(string, tag = "2")]
    failed_behind: String,
    /// Behind which number of the log the missed ones are yet to be owed; absent while there are
    /// failed ones left.
    #[prost(int64, optional, tag = "3")]
    missed_behind: Option<i64>,
}

/// When a recovery looks, and for what.
#[derive(Clone, Copy, Debug)]
struct Instants {
    since: Timestamp,
    /// What ended before may have been removed.
    kept_since: Timestamp,
    now: Timestamp,
}

impl Core {
    /// Sends again whatever failed since an instant, and what happened since then while the
    /// webhook was disabled. In several transactions: broken off, it may simply be repeated.
    pub(super) async fn recover(
        &self,
        caller: &Caller,
        mut request: proto::RecoverWebhookRequest,
    ) -> Result<Response<proto::RecoverWebhookResponse>, Error> {
        let webhook = (Collection::Webhooks, request.name.as_str());
        let idempotency = request.idempotency.take();
        let once = self.once_on(caller, "RecoverWebhook", webhook, idempotency)?;
        if let Some(reply) = self.replay(once).await? {
            return Ok(reply);
        }
        let (webhook, store) = self.webhook_of(caller, &request.name).await?;
        let mut violations = planning::violations(request.violations);
        let since = read_since(request.since, &mut violations);
        let Some(since) = since.filter(|_| violations.is_empty()) else {
            return Err(Error::Invalid(violations));
        };
        require_enabled(&webhook)?;

        let owner = (webhook.store_id, webhook.id);
        let time_zone = store.time_zone_name().to_owned();
        let mut progress = Progress::default();
        loop {
            let time_zone = time_zone.clone();
            let now = self.clock.now();
            let kept_since = now.saturating_sub(self.config.webhooks.retention());
            let instants = Instants {
                since,
                kept_since: kept_since.unwrap_or(Timestamp::MIN),
                now,
            };
            let step = self
                .write_step(once, progress, move |transaction, progress| {
                    let time_zone = time_zone.clone();
                    Box::pin(async move {
                        let progress = recover_more(transaction, owner, instants, progress);
                        Ok(match progress.await? {
                            Step::Unfinished(progress) => Step::Unfinished(progress),
                            Step::Finished(recovered) => {
                                Step::Finished(proto::RecoverWebhookResponse {
                                    since: Some(messages::timestamp(since)),
                                    recovered,
                                    time_zone,
                                })
                            }
                        })
                    })
                })
                .await?;
            self.bell.send_replace(());
            match step {
                Step::Unfinished(so_far) => progress = so_far,
                Step::Finished(reply) => return Ok(reply),
            }
        }
    }
}

/// Owes a webhook a batch; in the end, how many notifications that were in all.
async fn recover_more(
    transaction: &DatabaseTransaction,
    (store_id, id): (StoreId, WebhookId),
    instants: Instants,
    progress: Progress,
) -> Result<Step<Progress, u64>, Error> {
    // The lock keeps two who recover at once from owing the same twice, and the webhook from
    // being disabled meanwhile: it may have been since it was looked at, or deleted.
    let found = storage::webhooks::find_and_lock(transaction, store_id, id).await?;
    let (mut webhook, _) = found.ok_or_else(|| messages::no_webhook(id))?;
    require_enabled(&webhook)?;
    let Some(number) = progress.missed_behind else {
        return recover_failed(transaction, &webhook, instants, progress)
            .await
            .map(Step::Unfinished);
    };
    let (more, last) = recover_missed(transaction, &webhook, instants, number).await?;
    let recovered = progress.recovered.saturating_add(more);
    // Else it would be owed again once the notifications of it have been removed.
    if last.is_none() && webhook.forget_missed(instants.since, instants.now) {
        storage::webhooks::save_missed(transaction, &webhook).await?;
    }
    Ok(match last {
        None => Step::Finished(recovered),
        Some(number) => Step::Unfinished(Progress {
            recovered,
            missed_behind: Some(number),
            ..progress
        }),
    })
}

/// Owes a webhook again what failed. Each once: it may fail again before this is done.
async fn recover_failed(
    transaction: &DatabaseTransaction,
    webhook: &Webhook,
    Instants { since, now, .. }: Instants,
    progress: Progress,
) -> Result<Progress, Error> {
    let owner = (webhook.store_id, webhook.id);
    let behind = match pages::decode(&progress.failed_behind) {
        Some(Start::NewerThan(place)) => place,
        _ => Place {
            created_at: since,
            id: Uuid::nil(),
        },
    };
    let failed = webhook_notifications::failed_behind(transaction, owner, behind, BATCH).await?;
    let Some(last) = failed.last().copied() else {
        return Ok(Progress {
            missed_behind: Some(0),
            ..progress
        });
    };
    let ids = failed.iter().map(|place| NotificationId(place.id));
    let more = webhook_notifications::send_again(transaction, owner, ids, now).await?;
    Ok(Progress {
        recovered: progress.recovered.saturating_add(more),
        failed_behind: pages::encode(Start::NewerThan(last)),
        missed_behind: None,
    })
}

/// Owes a webhook what a page of the log has that it missed: how many events, and the number to
/// go on behind.
async fn recover_missed(
    transaction: &DatabaseTransaction,
    webhook: &Webhook,
    instants: Instants,
    behind: i64,
) -> Result<(u64, Option<i64>), Error> {
    let Some(period) = webhook.missed_since(instants.since, instants.kept_since) else {
        return Ok((0, None));
    };
    let page = webhook_notifications::missed(transaction, webhook, period, behind, BATCH).await?;
    if !page.missed.is_empty() {
        webhook_notifications::owe_missed(transaction, webhook, &page.missed, instants.now).await?;
    }
    let count = u64::try_from(page.missed.len()).unwrap_or(u64::MAX);
    Ok((count, page.last))
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
