//! What is or was owed to a webhook, for its owner to look at and to have sent again.

use std::{collections::HashMap, sync::Arc};

use domain::{
    api_client::Scope, id::NotificationId, notification_state::State, store::Store,
    webhook::Webhook,
};
use proto::iri::Collection;
use tonic::Response;

use super::{Core, caller::Caller, messages, pages, planning};
use storage::{
    self, ConnectionTrait,
    pages::Place,
    webhook_notifications::{Attempt, Shown},
};

use crate::error::Error;

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
        in_full(self.storage.reader(), &shown, &store).await
    }

    /// Sends a notification again, with the whole schedule before it.
    pub(super) async fn resend(
        &self,
        caller: &Caller,
        request: proto::ResendWebhookNotificationRequest,
    ) -> Result<Response<proto::WebhookNotification>, Error> {
        let name = request.name;
        let notification = (Collection::Notifications, name.as_str());
        let rpc = "ResendWebhookNotification";
        let once = self.once_on(caller, rpc, notification, request.idempotency)?;
        if let Some(reply) = self.replay(once).await? {
            return Ok(reply);
        }
        let (shown, webhook, store) = self.notification_of(caller, &name).await?;
        require_enabled(&webhook)?;

        let (owner, id, now) = ((webhook.store_id, webhook.id), shown.id, self.clock.now());
        let store = Arc::new(store);
        let reply = self
            .write_once(once, move |transaction| {
                let (store, name) = (Arc::clone(&store), name.clone());
                Box::pin(async move {
                    let (store_id, webhook_id) = owner;
                    let found =
                        storage::webhooks::find_and_lock(transaction, store_id, webhook_id).await?;
                    // It may have been disabled since it was looked at, or deleted.
                    let (webhook, _) =
                        found.ok_or_else(|| Error::NotFound { name: name.clone() })?;
                    require_enabled(&webhook)?;
                    storage::webhook_notifications::send_again(transaction, owner, [id], now)
                        .await?;
                    let shown = storage::webhook_notifications::find(transaction, store_id, id)
                        .await?
                        .ok_or(Error::NotFound { name })?;
                    in_full(transaction, &shown, &store).await
                })
            })
            .await?;
        self.bell.send_replace(());
        Ok(reply)
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
}

async fn in_full(
    connection: &impl ConnectionTrait,
    shown: &Shown,
    store: &Store,
) -> Result<proto::WebhookNotification, Error> {
    let mut attempts =
        storage::webhook_notifications::attempts(connection, shown.store_id, [shown.id]).await?;
    let attempts = attempts.remove(&shown.id).unwrap_or_default();
    Ok(message(shown, store, attempts))
}

pub(super) fn require_enabled(webhook: &Webhook) -> Result<(), Error> {
    if webhook.disabled.is_none() {
        return Ok(());
    }
    Err(Error::Conflict {
        reason: "WEBHOOK_DISABLED",
        message: "the webhook is disabled; enable it first".to_owned(),
    })
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
