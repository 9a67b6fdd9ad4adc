//! Notifications of a webhook: lists, gets and resends them.

use std::collections::HashMap;

use domain::{
    api_client::Scope,
    id::NotificationId,
    notification::{MAX_ATTEMPTS, State},
    store::Store,
    webhook::Webhook,
};
use proto::iri::Collection;
use storage::{
    ConnectionTrait,
    pages::Cursor,
    webhook_notifications::{self, AttemptView, NotificationView},
};
use tonic::Response;

use super::enable::require_enabled;
use crate::{
    auth::caller::Caller,
    error::Error,
    idempotency::begin_or_replay,
    messages::{self, pages},
    services::Services,
};

impl Services {
    pub(super) async fn list_notifications(
        &self,
        caller: &Caller,
        request: proto::ListWebhookNotificationsRequest,
    ) -> Result<proto::ListWebhookNotificationsResponse, Error> {
        let (webhook, store) = self
            .webhook_of(caller, Scope::PlatformRead, &request.webhook)
            .await?;

        let mut violations = messages::read_violations(request.violations);
        let mut states = Vec::new();
        for name in &request.states {
            let state = violations.check("states", "UNKNOWN_STATE", name.parse::<State>());
            // Without repetitions: a condition for each could make the statement too deep.
            states.extend(state.filter(|state| !states.contains(state)));
        }
        let size = pages::read_size(request.page_size, &mut violations);
        let start = pages::read_token(&request.page_token, &mut violations);
        Error::check(violations)?;

        let reader = self.storage.reader();
        let (page, has_more) =
            webhook_notifications::read(reader, webhook.key(), &states, start, size).await?;
        let ends = [page.first().map(cursor), page.last().map(cursor)];
        let (next_page_token, previous_page_token) = pages::tokens(start, ends, has_more);
        let mut attempts = HashMap::new();
        if request.with_attempts {
            let ids = page.iter().map(|notification| notification.id);
            attempts = webhook_notifications::attempts(reader, webhook.store_id, ids).await?;
        }
        Ok(proto::ListWebhookNotificationsResponse {
            notifications: page
                .iter()
                .map(|notification| {
                    let attempts = attempts.remove(&notification.id).unwrap_or_default();
                    message(notification, &store, attempts)
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
        let (notification, _, store) = self
            .notification_of(caller, Scope::PlatformRead, name)
            .await?;
        with_attempts(self.storage.reader(), &notification, &store).await
    }

    /// Makes a notification due now and restarts its retry schedule. Fails if it has had
    /// `MAX_ATTEMPTS` attempts in total. Changes nothing if it is leased.
    pub(super) async fn resend_notification(
        &self,
        caller: &Caller,
        request: proto::ResendWebhookNotificationRequest,
    ) -> Result<Response<proto::WebhookNotification>, Error> {
        let name = request.name;
        let idempotency = request.idempotency;
        let request_key = begin_or_replay!(
            self,
            caller,
            "ResendWebhookNotification",
            &name,
            idempotency
        );
        let (notification, webhook, store) =
            self.notification_of(caller, Scope::Admin, &name).await?;
        require_enabled(&webhook)?;

        let (store_id, webhook_key) = (webhook.store_id, webhook.key());
        let (id, now) = (notification.id, self.clock.now());
        let audit = caller.audit.clone();
        let reply = self
            .idempotency
            .write(request_key, move |transaction| async move {
                let found = storage::webhooks::find_and_lock(&transaction, webhook_key).await?;
                // It may have been disabled or deleted since it was read.
                let (webhook, _) = found.ok_or_else(|| Error::NotFound(name.clone()))?;
                require_enabled(&webhook)?;
                let find = webhook_notifications::find(&transaction, store_id, id);
                if find
                    .await?
                    .is_some_and(|found| found.attempts >= MAX_ATTEMPTS)
                {
                    return Err(Error::Conflict(
                        "TOO_MANY_ATTEMPTS",
                        format!("the notification has been attempted {MAX_ATTEMPTS} times or more"),
                    ));
                }
                webhook_notifications::resend(&transaction, webhook_key, [id], now).await?;
                audit.record(&transaction, Some(store_id), &*name).await?;
                let notification = webhook_notifications::find(&transaction, store_id, id)
                    .await?
                    .ok_or(Error::NotFound(name))?;
                with_attempts(&transaction, &notification, &store).await
            })
            .await?;
        self.queue.streams.wake();
        Ok(reply)
    }

    /// Finds a notification if the caller has access to its webhook, as `webhook_of` does. Returns it
    /// with the webhook and the store.
    async fn notification_of(
        &self,
        caller: &Caller,
        scope: Scope,
        name: &str,
    ) -> Result<(NotificationView, Webhook, Store), Error> {
        let reader = self.storage.reader();
        let collection = Collection::Notifications;
        let notification = if caller.has(scope) {
            let find = |id| webhook_notifications::find_of_any_store(reader, NotificationId(id));
            messages::find_resource(collection, name, find).await?
        } else {
            let store_id = caller.store()?.id;
            let find = |id| webhook_notifications::find(reader, store_id, NotificationId(id));
            messages::find_resource(collection, name, find).await?
        };
        let webhook = Collection::Webhooks.name(notification.webhook_id);
        match self.webhook_of(caller, scope, &webhook).await {
            Ok((webhook, store)) => Ok((notification, webhook, store)),
            // Name the notification that was requested.
            Err(Error::NotFound(_)) => Err(Error::NotFound(name.to_owned())),
            Err(error) => Err(error),
        }
    }
}

async fn with_attempts(
    connection: &impl ConnectionTrait,
    notification: &NotificationView,
    store: &Store,
) -> Result<proto::WebhookNotification, Error> {
    let mut attempts =
        webhook_notifications::attempts(connection, notification.store_id, [notification.id])
            .await?;
    let attempts = attempts.remove(&notification.id).unwrap_or_default();
    Ok(message(notification, store, attempts))
}

fn cursor(notification: &NotificationView) -> Cursor {
    Cursor {
        created_at: notification.created_at,
        id: notification.id.0,
    }
}

fn message(
    notification: &NotificationView,
    store: &Store,
    attempts: Vec<AttemptView>,
) -> proto::WebhookNotification {
    use proto::webhook_notification::State as StateMessage;
    proto::WebhookNotification {
        name: Collection::Notifications.name(notification.id),
        webhook: Collection::Webhooks.name(notification.webhook_id),
        event: notification.event.clone(),
        object: Collection::Deliveries.name(notification.delivery_id),
        state: match notification.state {
            State::Pending => StateMessage::Pending,
            State::Failed => StateMessage::Failed,
            State::Delivered => StateMessage::Delivered,
            State::Exhausted => StateMessage::Exhausted,
            State::Cancelled => StateMessage::Cancelled,
        }
        .into(),
        attempt_count: notification.attempts,
        next_attempt_time: notification.due_at.map(messages::timestamp),
        create_time: Some(messages::timestamp(notification.created_at)),
        finish_time: notification.finished_at.map(messages::timestamp),
        // Attempts are read after the notification: skip one that was recorded since.
        attempts: attempts
            .into_iter()
            .filter(|attempt| attempt.number <= notification.attempts)
            .map(attempt)
            .collect(),
        time_zone: store.time_zone_name().to_owned(),
    }
}

fn attempt(attempt: AttemptView) -> proto::WebhookAttempt {
    proto::WebhookAttempt {
        number: attempt.number,
        failure: attempt.failure.unwrap_or_default(),
        status: attempt.status,
        duration_microseconds: attempt.duration,
        response_body: attempt.response_body,
        end_time: Some(messages::timestamp(attempt.recorded_at)),
    }
}
