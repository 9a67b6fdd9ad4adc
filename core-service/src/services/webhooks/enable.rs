//! Enables and disables webhooks.

use domain::{
    api_client::Scope,
    webhook::{Disabled, DisabledReason, Webhook},
};
use storage::ConnectionTrait;
use tonic::Response;

use super::{lock, message, record};
use crate::{auth::caller::Caller, error::Error, idempotency::begin_or_replay, services::Services};

impl Services {
    /// Disables or enables a webhook. Changes nothing if it already is in that state.
    pub(super) async fn set_disabled(
        &self,
        caller: &Caller,
        name: &str,
        idempotency: Option<proto::Idempotency>,
        is_disabled: bool,
    ) -> Result<Response<proto::Webhook>, Error> {
        let rpc = if is_disabled {
            "DisableWebhook"
        } else {
            "EnableWebhook"
        };
        let request_key = begin_or_replay!(self, caller, rpc, name, idempotency);
        let (webhook, store) = self.webhook_of(caller, Scope::Admin, name).await?;
        let is_operator = caller.has(Scope::Admin);
        let disabled = is_disabled.then(|| Disabled {
            at: self.clock.now(),
            reason: if is_operator {
                DisabledReason::Operator
            } else {
                DisabledReason::Client
            },
        });
        if disabled.is_none() && webhook.disabled.is_some() {
            // In several transactions, since the backlog may be too long for one.
            let now = self.clock.now();
            storage::notifications::cancel_whole_backlog(&self.storage, webhook.key(), now).await?;
        }

        let (key, now) = (webhook.key(), self.clock.now());
        let audit = caller.audit.clone();
        self.idempotency
            .write(request_key, move |transaction| async move {
                let (mut webhook, _) = lock(&transaction, key).await?;
                let is_changed = if let Some(disabled) = disabled {
                    webhook.disable(disabled)
                } else {
                    require_may_enable(&transaction, &webhook, is_operator).await?;
                    webhook.enable(now)
                };
                if is_changed {
                    record(&audit, &transaction, key).await?;
                    storage::webhooks::save_disabled(&transaction, &webhook).await?;
                    // On disabling, the first batch; `Retention` cancels the rest. On
                    // enabling, too: an event that was committed while it was disabled may
                    // have enqueued a notification.
                    storage::notifications::cancel_backlog(&transaction, &webhook, now).await?;
                }
                Ok(message(&webhook, &store, now))
            })
            .await
    }
}

/// Fails if an operator has disabled the webhook and the caller is not an operator, or if the
/// webhook's client is disabled.
async fn require_may_enable(
    transaction: &impl ConnectionTrait,
    webhook: &Webhook,
    is_operator: bool,
) -> Result<(), Error> {
    let Some(disabled) = webhook.disabled else {
        return Ok(());
    };
    if disabled.reason == DisabledReason::Operator && !is_operator {
        return Err(Error::Conflict(
            "WEBHOOK_DISABLED_BY_OPERATOR",
            "the platform's operator disabled the webhook; only the operator can enable it"
                .to_owned(),
        ));
    }
    let client = storage::api_clients::find(transaction, webhook.api_client_id).await?;
    if client.is_none_or(|client| client.disabled_at.is_some()) {
        return Err(Error::Conflict(
            "CLIENT_DISABLED",
            "the webhook's client is disabled; create a webhook with another client".to_owned(),
        ));
    }
    Ok(())
}

pub(super) fn require_enabled(webhook: &Webhook) -> Result<(), Error> {
    if webhook.disabled.is_none() {
        return Ok(());
    }
    Err(Error::Conflict(
        "WEBHOOK_DISABLED",
        "the webhook is disabled; enable it first".to_owned(),
    ))
}
