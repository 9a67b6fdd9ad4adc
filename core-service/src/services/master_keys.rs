//! Master keys: encrypts stored secrets with the current one, for operators.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use domain::{
    api_client::Scope,
    id::{ApiClientId, StoreId, WebhookId},
    webhook::WebhookKey,
};
use jiff::Timestamp;
use storage::{Session, idempotency_keys::Key, webhooks::secret_columns};
use tonic::{Request, Response};

use super::{Reply, Services};
use crate::{
    auth::{audit::Audit, caller::Caller},
    error::Error,
    secrets::secret_box::{Purpose, SecretBox},
};

/// The most webhooks or stored responses that a call examines.
pub(crate) const PAGE: u64 = 500;

/// The most rows that one transaction changes; a small batch delays no other write.
pub(crate) const BATCH: usize = 50;

/// What a call examines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    /// The signing keys and the platform's secrets, which are few.
    Keys,
    WebhooksAfter(Option<WebhookKey>),
    ResponsesAfter(Option<Key>),
}

#[tonic::async_trait]
impl proto::master_keys_server::MasterKeys for Services {
    async fn reencrypt_secrets(
        &self,
        request: Request<proto::ReencryptSecretsRequest>,
    ) -> Reply<proto::ReencryptSecretsResponse> {
        let (caller, request) = Caller::with_scope(request, Scope::Admin)?;

        let page = Page::decode(&request.page_token)?;
        let mut ids = self.secret_box.key_ids().into_iter();
        let mut response = proto::ReencryptSecretsResponse {
            current_key: ids.next().map(|id| id.to_string()).unwrap_or_default(),
            other_keys: ids.map(|id| id.to_string()).collect(),
            ..proto::ReencryptSecretsResponse::default()
        };
        let next = match page {
            Page::Keys => {
                let reencrypt = self.reencrypt_keys(caller.audit.clone());
                (response.signing_keys, response.platform_secrets) = reencrypt.await?;
                Some(Page::WebhooksAfter(None))
            }
            Page::WebhooksAfter(after) => {
                let (count, last) = self.reencrypt_webhooks(after).await?;
                response.webhooks = count;
                let next = last.map_or(Page::ResponsesAfter(None), |last| {
                    Page::WebhooksAfter(Some(last))
                });
                Some(next)
            }
            Page::ResponsesAfter(after) => {
                let (count, last) = self.idempotency.reencrypt_responses(after).await?;
                response.stored_responses = count;
                last.map(|last| Page::ResponsesAfter(Some(last)))
            }
        };
        if let Some(next) = next {
            response.next_page_token = next.encode();
        } else {
            self.storage
                .truncate_write_ahead_log()
                .await
                .map_err(Error::from)?;
        }
        let counts = [
            response.signing_keys,
            response.platform_secrets,
            response.webhooks,
            response.stored_responses,
        ];
        let key = format!("master_keys/{}", response.current_key);
        let reply = Response::new(response);
        if counts.iter().any(|count| *count > 0) {
            caller.audit("ReencryptSecrets", &key, &reply);
        }
        Ok(reply)
    }
}

impl Services {
    /// Returns how many signing keys and secrets of the platform were reencrypted.
    async fn reencrypt_keys(&self, audit: Audit) -> Result<(u32, u32), Error> {
        let secret_box = Arc::clone(&self.secret_box);
        self.storage
            .write(move |transaction| async move {
                // Without the id: a search of a copy of the database for what needs a key finds no more than that.
                audit.record(&transaction, None, "master_keys").await?;
                let (mut signing_keys, mut platform_secrets) = (0, 0);
                storage::signing_keys::lock(&transaction).await?;
                for key in storage::signing_keys::list(&transaction).await? {
                    let (context, old) = (key.id.as_bytes(), &key.encrypted_private_key);
                    let new = secret_box.reencrypt(Purpose::SigningKey, context, old)?;
                    if let Some(new) = new {
                        storage::signing_keys::save(&transaction, key.id, new).await?;
                        signing_keys += 1;
                    }
                }
                let secrets = storage::platform_secrets::list_and_lock(&transaction).await?;
                for mut secret in secrets {
                    let (context, old) = (secret.name.as_bytes(), &secret.encrypted);
                    let new = secret_box.reencrypt(Purpose::PlatformSecret, context, old)?;
                    if let Some(new) = new {
                        secret.encrypted = new;
                        storage::platform_secrets::save(&transaction, secret).await?;
                        platform_secrets += 1;
                    }
                }
                Ok((signing_keys, platform_secrets))
            })
            .await
    }

    /// Examines the next page of webhooks: those after the key `after`. Returns how many were
    /// reencrypted, and the key of the last one that was examined; `None` if none was left.
    async fn reencrypt_webhooks(
        &self,
        after: Option<WebhookKey>,
    ) -> Result<(u32, Option<WebhookKey>), Error> {
        let page = secret_columns::list(self.storage.reader(), after, PAGE).await?;
        let last = page.last().map(|(webhook, _)| *webhook);
        let current = self.secret_box.current_key();
        let others: Vec<_> = page
            .into_iter()
            .filter(|(_, secrets)| secrets.all().any(|secret| !current.encrypted(secret)))
            .map(|(webhook, _)| webhook)
            .collect();
        let mut count = 0;
        for batch in others.chunks(BATCH) {
            let (batch, secret_box) = (batch.to_vec(), Arc::clone(&self.secret_box));
            let now = self.clock.now();
            let write = self.storage.write(move |transaction| async move {
                reencrypt_batch(&transaction, &secret_box, batch, now).await
            });
            count += write.await?;
        }
        Ok((count, last))
    }
}

/// Returns how many webhooks were reencrypted: all but those deleted meanwhile.
async fn reencrypt_batch(
    transaction: &Session,
    secret_box: &SecretBox,
    batch: Vec<WebhookKey>,
    now: Timestamp,
) -> Result<u32, Error> {
    let mut count = 0;
    for key in batch {
        let found = storage::webhooks::find_and_lock(transaction, key).await?;
        let Some((_, mut secrets)) = found else {
            continue;
        };
        let context = key.webhook_id.0.as_bytes();
        secrets.reencrypt(now, |secret| {
            let new = secret_box.reencrypt(Purpose::WebhookSecret, context, secret)?;
            Ok::<_, Error>(new.unwrap_or_else(|| secret.to_vec()))
        })?;
        secret_columns::save(transaction, key, &secrets, now).await?;
        count += 1;
    }
    Ok(count)
}

impl Page {
    fn encode(self) -> String {
        match self {
            Self::Keys => String::new(),
            Self::WebhooksAfter(None) => "webhooks".to_owned(),
            Self::WebhooksAfter(Some(key)) => {
                format!("webhooks/{}/{}", key.store_id.0, key.webhook_id.0)
            }
            Self::ResponsesAfter(None) => "responses".to_owned(),
            Self::ResponsesAfter(Some(key)) => format!(
                "responses/{}/{}/{}",
                key.store_id.0,
                key.api_client_id.0,
                BASE64_URL_SAFE_NO_PAD.encode(key.hash)
            ),
        }
    }

    fn decode(token: &str) -> Result<Self, Error> {
        Self::parse(token).ok_or_else(|| {
            Error::invalid("page_token", "INVALID_CURSOR", "is not a token of this rpc")
        })
    }

    fn parse(token: &str) -> Option<Self> {
        let parts: Vec<_> = token.split('/').collect();
        match parts[..] {
            [""] => Some(Self::Keys),
            ["webhooks"] => Some(Self::WebhooksAfter(None)),
            ["webhooks", store_id, id] => Some(Self::WebhooksAfter(Some(WebhookKey {
                store_id: StoreId(store_id.parse().ok()?),
                webhook_id: WebhookId(id.parse().ok()?),
            }))),
            ["responses"] => Some(Self::ResponsesAfter(None)),
            ["responses", store_id, client_id, hash] => {
                let hash = BASE64_URL_SAFE_NO_PAD.decode(hash).ok()?;
                Some(Self::ResponsesAfter(Some(Key {
                    store_id: StoreId(store_id.parse().ok()?),
                    api_client_id: ApiClientId(client_id.parse().ok()?),
                    hash: hash.try_into().ok()?,
                })))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_page_token_is_read_as_it_was_written() {
        let key = Key {
            store_id: StoreId(Uuid::nil()),
            api_client_id: ApiClientId(Uuid::max()),
            hash: [0xff; 32],
        };
        let webhook = WebhookKey {
            store_id: StoreId(Uuid::max()),
            webhook_id: WebhookId(Uuid::nil()),
        };
        for page in [
            Page::Keys,
            Page::WebhooksAfter(None),
            Page::WebhooksAfter(Some(webhook)),
            Page::ResponsesAfter(None),
            Page::ResponsesAfter(Some(key)),
        ] {
            assert_eq!(Page::parse(&page.encode()), Some(page));
        }
        for wrong in ["tasks", "webhooks/", "responses/1/2/3", "webhooks/1/2"] {
            assert_eq!(Page::parse(wrong), None, "{wrong}");
        }
    }
}
