//! Encrypts stored responses with the current master key.

use std::sync::Arc;

use storage::idempotency_keys::{self, Key};

use super::{Idempotency, request};
use crate::{
    error::Error,
    secrets::master_keys::KeyId,
    services::master_keys::{BATCH, PAGE},
};

impl Idempotency {
    /// Examines the next page of stored responses: those after the key `after`. Returns how many
    /// were reencrypted, and the key of the last one that was examined; `None` if none was left.
    pub(crate) async fn reencrypt_responses(
        &self,
        after: Option<Key>,
    ) -> Result<(u32, Option<Key>), Error> {
        let reader = self.storage.reader();
        // The id of its key is enough of a response.
        let page = idempotency_keys::list_prefixes(reader, after, KeyId::LENGTH, PAGE).await?;
        let last = page.last().map(|(key, _)| *key);
        let current = self.secret_box.current_key();
        let others: Vec<_> = page
            .into_iter()
            .filter(|(_, prefix)| !current.encrypted(prefix))
            .map(|(key, _)| key)
            .collect();
        let mut count = 0;
        for batch in others.chunks(BATCH) {
            let (batch, secret_box) = (batch.to_vec(), Arc::clone(&self.secret_box));
            let write = self.storage.write(move |transaction| async move {
                let mut count = 0;
                for key in batch {
                    let found = idempotency_keys::find_and_lock(&transaction, key).await?;
                    let Some(old) = found else {
                        continue;
                    };
                    if let Some(new) = request::reencrypt(&secret_box, key, &old)? {
                        idempotency_keys::store_response(&transaction, key, new).await?;
                        count += 1;
                    }
                }
                Ok::<_, Error>(count)
            });
            count += write.await?;
        }
        Ok((count, last))
    }
}
