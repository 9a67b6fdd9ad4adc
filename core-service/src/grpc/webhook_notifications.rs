//! What is or was owed to a webhook, for its owner to look at and to have sent again.

use std::collections::HashMap;

use jiff::Timestamp;
use proto::iri::Collection;

use super::{Core, caller::Caller, messages, pages, planning};
use crate::{
    domain::{
        api_client::Scope, id::NotificationId, notification_state::State, store::Store,
        violation::Violations, webhook::Webhook,
    },
    error::Error,
    storage::{
        self,
        delivery_pages::Place,
        webhook_notifications::{Attempt, Shown},
    },
};

/// How many notifications are made due by one transaction.
const BATCH: u64 = 500;

impl Core {
    pub(super) async fn list_notifications(
        &self,
        caller: &Caller,
        request: proto::ListWebhookNotificationsRequest,
    ) -> Result<proto::ListWebhookNotificationsResponse, Error> {
        let (webhook, store) = self.webhook_of(caller, &request.webhook).await?;

        let mut violations = planning::violations(request.violations);
        let mut states = Vec::new();
        for name in &request.states {
            states.extend(violations.check("states", "UNKNOWN_STATE", name.parse::<State>()));
        }
        let size = pages::read_size(request.page_size, &mut violations);
        let start = pages::read_token(&request.page_token, &mut violations);
        if !violations.is_empty() {
            return Err(Error::Invalid(violations));
        }

        let owner = (webhook.store_id, webhook.id);
        let reader = self.storage.reader();
        let (page, more) =
            storage::webhook_notifications::read(reader, owner, &states, start, size).await?;
        let ends = [page.first().map(place), page.last().map(place)];
        let (next_page_token, previous_page_token) = pages::tokens(start, ends, more);
        let mut attempts = HashMap::new();
        if request.with_attempts {
            let ids = page.iter().map(|shown| shown.id);
            attempts =
                storage::webhook_notifications::attempts(reader, webhook.store_id, ids).await?;
        }
        Ok(proto::ListWebhookNotificationsResponse {
            notifications: page
                .iter()
                .map(|shown| {
                    let attempts = attempts.remove(&shown.id).unwrap_or_default();
                    message(shown, &store, attempts)
                })
                .collect(),
            next_page_token,
            previous_page_token,
        })
    }

    pub(super) async fn get_notification(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<proto::WebhookNotification, Error> {
        let (shown, _, store) = self.notification_of(caller, name).await?;
        self.in_full(&shown, &store).await
    }

    /// Sends a notification again, with the whole schedule before it.
    pub(super) async fn resend(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<proto::WebhookNotification, Error> {
        let (shown, webhook, store) = self.notification_of(caller, name).await?;
        require_enabled(&webhook)?;

        let (owner, id, now) = ((webhook.store_id, webhook.id), shown.id, self.clock.now());
        self.storage
            .write(move |transaction| {
                Box::pin(async move {
                    storage::webhook_notifications::send_again(transaction, owner, [id], now)
                        .await?;
                    Ok(())
                })
            })
            .await?;
        self.bell.send_replace(());

        let (shown, _, _) = self.notification_of(caller, name).await?;
        self.in_full(&shown, &store).await
    }

    /// Sends again whatever failed since an instant, and what happened since then while the
    /// webhook was disabled. In several transactions: broken off, it may simply be repeated.
    pub(super) async fn recover(
        &self,
        caller: &Caller,
        request: proto::RecoverWebhookRequest,
    ) -> Result<proto::RecoverWebhookResponse, Error> {
        let (webhook, store) = self.webhook_of(caller, &request.name).await?;
        let mut violations = planning::violations(request.violations);
        let since = read_since(request.since, &mut violations);
        let Some(since) = since.filter(|_| violations.is_empty()) else {
            return Err(Error::Invalid(violations));
        };
        require_enabled(&webhook)?;

        let mut recovered = 0;
        loop {
            let more = self.recover_failed(&webhook, since).await?;
            recovered += more;
            if more < BATCH {
                break;
            }
            self.bell.send_replace(());
        }
        let mut after = Some(0);
        while let Some(number) = after {
            let (missed, last) = self.recover_missed(&webhook, since, number).await?;
            recovered += missed;
            after = last;
        }
        self.bell.send_replace(());
        Ok(proto::RecoverWebhookResponse {
            since: Some(messages::timestamp(since)),
            recovered,
            time_zone: store.time_zone_name().to_owned(),
        })
    }

    async fn recover_failed(&self, webhook: &Webhook, since: Timestamp) -> Result<u64, Error> {
        let owner = (webhook.store_id, webhook.id);
        let now = self.clock.now();
        self.storage
            .write(move |transaction| {
                Box::pin(async move {
                    let ids = storage::webhook_notifications::failed_since(
                        transaction,
                        owner,
                        since,
                        BATCH,
                    )
                    .await?;
                    if ids.is_empty() {
                        return Ok(0);
                    }
                    Ok(
                        storage::webhook_notifications::send_again(transaction, owner, ids, now)
                            .await?,
                    )
                })
            })
            .await
    }

    /// Owes a webhook what a page of the log has that it missed: how many events, and the number
    /// to go on after.
    async fn recover_missed(
        &self,
        webhook: &Webhook,
        since: Timestamp,
        after: i64,
    ) -> Result<(u64, Option<i64>), Error> {
        let (store_id, id, now) = (webhook.store_id, webhook.id, self.clock.now());
        self.storage
            .write(move |transaction| {
                Box::pin(async move {
                    // The lock keeps two who recover at once from owing the same twice.
                    let found = storage::webhooks::find_and_lock(transaction, store_id, id).await?;
                    let missed = found.and_then(|(webhook, _)| Some((webhook.missed?, webhook)));
                    let Some(((from, until), webhook)) = missed else {
                        return Ok((0, None));
                    };
                    let period = (from.max(since), until);
                    let page = storage::webhook_notifications::missed(
                        transaction,
                        &webhook,
                        period,
                        after,
                        BATCH,
                    )
                    .await?;
                    if !page.missed.is_empty() {
                        storage::webhook_notifications::owe_missed(
                            transaction,
                            &webhook,
                            &page.missed,
                            now,
                        )
                        .await?;
                    }
                    let count = u64::try_from(page.missed.len()).unwrap_or(u64::MAX);
                    Ok((count, page.last))
                })
            })
            .await
    }

    /// A notification of a webhook that the caller may see, that webhook and its store.
    async fn notification_of(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<(Shown, Webhook, Store), Error> {
        let not_found = || Error::NotFound {
            name: name.to_owned(),
        };
        let reader = self.storage.reader();
        let id = Collection::Notifications.id(name).map(NotificationId);
        let shown = if caller.has(Scope::Admin) {
            let id = id.ok_or_else(not_found)?;
            storage::webhook_notifications::find_of_any_store(reader, id).await?
        } else {
            let store = caller.store()?;
            let id = id.ok_or_else(not_found)?;
            storage::webhook_notifications::find(reader, store.id, id).await?
        };
        let shown = shown.ok_or_else(not_found)?;
        let webhook = messages::webhook_name(shown.webhook_id);
        match self.webhook_of(caller, &webhook).await {
            Ok((webhook, store)) => Ok((shown, webhook, store)),
            // In the words of what was asked for.
            Err(Error::NotFound { .. }) => Err(not_found()),
            Err(error) => Err(error),
        }
    }

    async fn in_full(
        &self,
        shown: &Shown,
        store: &Store,
    ) -> Result<proto::WebhookNotification, Error> {
        let reader = self.storage.reader();
        let mut attempts =
            storage::webhook_notifications::attempts(reader, shown.store_id, [shown.id]).await?;
        let attempts = attempts.remove(&shown.id).unwrap_or_default();
        Ok(message(shown, store, attempts))
    }
}

fn require_enabled(webhook: &Webhook) -> Result<(), Error> {
    if webhook.disabled.is_none() {
        return Ok(());
    }
    Err(Error::Conflict {
        reason: "WEBHOOK_DISABLED",
        message: "the webhook is disabled; enable it first".to_owned(),
    })
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

fn place(shown: &Shown) -> Place {
    Place {
        created_at: shown.created_at,
        id: shown.id.0,
    }
}

fn message(shown: &Shown, store: &Store, attempts: Vec<Attempt>) -> proto::WebhookNotification {
    use proto::webhook_notification::State as Told;
    proto::WebhookNotification {
        name: Collection::Notifications.name(shown.id),
        webhook: messages::webhook_name(shown.webhook_id),
        event: shown.event.clone(),
        object: Collection::Deliveries.name(shown.delivery_id),
        state: match shown.state {
            State::Pending => Told::Pending,
            State::Failed => Told::Failed,
            State::Delivered => Told::Delivered,
            State::GivenUp => Told::GivenUp,
            State::Dropped => Told::Dropped,
        }
        .into(),
        attempt_count: shown.attempts,
        next_attempt_time: shown.due_at.map(messages::timestamp),
        create_time: Some(messages::timestamp(shown.created_at)),
        finish_time: shown.finished_at.map(messages::timestamp),
        // They were read after it: one that has ended since is for the next look.
        attempts: attempts
            .into_iter()
            .filter(|attempt| attempt.number <= shown.attempts)
            .map(attempt)
            .collect(),
        time_zone: store.time_zone_name().to_owned(),
    }
}

fn attempt(attempt: Attempt) -> proto::WebhookAttempt {
    proto::WebhookAttempt {
        number: attempt.number,
        failure: attempt.failure.unwrap_or_default(),
        status: attempt.status,
        duration_microseconds: attempt.duration,
        answer: attempt.answer,
        end_time: Some(messages::timestamp(attempt.recorded_at)),
    }
}
