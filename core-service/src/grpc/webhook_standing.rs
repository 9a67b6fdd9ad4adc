//! Webhooks that are told nothing for a while, because their client or an operator says so.

use std::sync::Arc;

use domain::{
    api_client::Scope,
    webhook::{Disabled, DisabledReason},
};
use proto::iri::Collection;
use tonic::Response;

use super::{Core, caller::Caller, messages};

use crate::error::Error;

impl Core {
    pub(super) async fn enable(
        &self,
        caller: &Caller,
        request: proto::EnableWebhookRequest,
    ) -> Result<Response<proto::Webhook>, Error> {
        let (name, idempotency) = (request.name, request.idempotency);
        self.set_disabled(caller, ("EnableWebhook", &name), idempotency, None)
            .await
    }

    pub(super) async fn disable(
        &self,
        caller: &Caller,
        request: proto::DisableWebhookRequest,
    ) -> Result<Response<proto::Webhook>, Error> {
        let disabled = Disabled {
            at: self.clock.now(),
            reason: if caller.has(Scope::Admin) {
                DisabledReason::Operator
            } else {
                DisabledReason::Client
            },
        };
        let (name, idempotency) = (request.name, request.idempotency);
        self.set_disabled(
            caller,
            ("DisableWebhook", &name),
            idempotency,
            Some(disabled),
        )
        .await
    }

    /// Disables a webhook, or enables it. One that is so already stays as it is.
    async fn set_disabled(
        &self,
        caller: &Caller,
        (rpc, name): (&str, &str),
        idempotency: Option<proto::Idempotency>,
        disabled: Option<Disabled>,
    ) -> Result<Response<proto::Webhook>, Error> {
        let once = self.once_on(caller, rpc, (Collection::Webhooks, name), idempotency)?;
        if let Some(reply) = self.replay(once).await? {
            return Ok(reply);
        }
        let (webhook, store) = self.webhook_of(caller, name).await?;
        if disabled.is_none() && webhook.disabled.is_some() {
            // In transactions of their own: there may be too many for one.
            let (of, now) = ((webhook.store_id, webhook.id), self.clock.now());
            storage::notifications::drop_left_of(&self.storage, of, now).await?;
        }

        let (store_id, id, now) = (webhook.store_id, webhook.id, self.clock.now());
        let store = Arc::new(store);
        self.write_once(once, move |transaction| {
            let store = Arc::clone(&store);
            Box::pin(async move {
                let found = storage::webhooks::find_and_lock(transaction, store_id, id).await?;
                // It may have been deleted since it was looked at.
                let (mut webhook, _) = found.ok_or_else(|| messages::no_webhook(id))?;
                let is_new = match disabled {
                    Some(disabled) => webhook.disable(disabled),
                    None => webhook.enable(now),
                };
                if is_new {
                    storage::webhooks::save_disabled(transaction, &webhook).await?;
                    // When it is enabled too: what happened just as it was disabled may have come
                    // to be owed since.
                    storage::notifications::drop_backlog(transaction, &webhook, now).await?;
                }
                Ok(messages::webhook(&webhook, &store, now))
            })
        })
        .await
    }
}
