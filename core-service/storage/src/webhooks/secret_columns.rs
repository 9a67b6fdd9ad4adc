//! The columns of webhooks' encrypted secrets.

use domain::{webhook::WebhookKey, webhook_secrets::Secrets};

use crate::entity::{
    Instant,
    webhook::{ActiveModel, Column, Entity, Model},
};
use crate::prelude::*;

/// The secrets of a store's webhook.
pub async fn find(
    connection: &impl ConnectionTrait,
    key: WebhookKey,
) -> Result<Option<Secrets>, Error> {
    let query = Entity::find_by_id((key.store_id.0, key.webhook_id.0));
    query.one(connection).await?.map(from_row).transpose()
}

/// The secrets of the webhooks of all stores: those after a webhook, in the order of their keys,
/// `limit` at most.
pub async fn list(
    connection: &impl ConnectionTrait,
    after: Option<WebhookKey>,
    limit: u64,
) -> Result<Vec<(WebhookKey, Secrets)>, Error> {
    let after = after.map(|key| [key.store_id.0.into(), key.webhook_id.0.into()]);
    let query = rows::after(Entity::find(), [Column::StoreId, Column::Id], after);
    let rows = query.limit(limit).all(connection).await?.into_iter();
    rows.map(|row| Ok((super::key(row.store_id, row.id), from_row(row)?)))
        .collect()
}

/// The distinct first bytes of the newest secrets, and of the oldest retired ones, of all webhooks.
pub async fn distinct_prefixes(
    connection: &impl ConnectionTrait,
    length: usize,
) -> Result<Vec<Vec<u8>>, Error> {
    let mut prefixes = Vec::new();
    for expression in [
        format!("substr(encrypted_secret, 1, {length})"),
        // After the length of the oldest, which comes first.
        format!("substr(encrypted_retired_secrets, 3, {length})"),
    ] {
        let found: Vec<Option<Vec<u8>>> = Entity::find()
            .select_only()
            .column_as(Expr::cust(expression), "prefix")
            .distinct()
            .into_tuple()
            .all(connection)
            .await?;
        prefixes.extend(found.into_iter().flatten());
    }
    Ok(prefixes)
}

/// Saves a webhook's secrets.
pub async fn save(
    transaction: &impl ConnectionTrait,
    key: WebhookKey,
    secrets: &Secrets,
    now: Timestamp,
) -> Result<(), Error> {
    let row = ActiveModel {
        store_id: Set(key.store_id.0),
        id: Set(key.webhook_id.0),
        encrypted_secret: Set(secrets.newest.clone()),
        encrypted_retired_secrets: Set(pack(&secrets.retired)?),
        overlap_ends_at: Set(secrets.overlap_ends_at(now).map(Into::into)),
        ..Default::default()
    };
    rows::update(transaction, row).await
}

pub(super) fn from_row(row: Model) -> Result<Secrets, Error> {
    let retired = match &row.encrypted_retired_secrets {
        Some(packed) => unpack(packed)
            .ok_or_else(|| Error::inconsistent("webhooks", "truncated retired secrets"))?,
        None => Vec::new(),
    };
    Ok(Secrets {
        newest: row.encrypted_secret,
        retired,
        overlap_ends_at: Instant::optional(row.overlap_ends_at)?,
    })
}

/// Packs secrets into one value, each prefixed with its length in two bytes; `None` if empty.
pub(super) fn pack(secrets: &[Vec<u8>]) -> Result<Option<Vec<u8>>, Error> {
    let mut packed = Vec::new();
    for secret in secrets {
        let length = u16::try_from(secret.len())
            .map_err(|_| Error::inconsistent("webhooks", "a secret of 64 KiB or more"))?;
        packed.extend(length.to_be_bytes());
        packed.extend(secret);
    }
    Ok(Some(packed).filter(|packed| !packed.is_empty()))
}

fn unpack(mut packed: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut secrets = Vec::new();
    while !packed.is_empty() {
        let (length, rest) = packed.split_first_chunk()?;
        let (secret, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
        secrets.push(secret.to_vec());
        packed = rest;
    }
    Some(secrets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{fixture, webhooks};

    #[test]
    fn packed_secrets_are_unpacked_unchanged() {
        for secrets in [
            vec![],
            vec![b"a".to_vec()],
            vec![vec![7; 300], vec![], vec![0]],
        ] {
            let packed = pack(&secrets).unwrap().unwrap_or_default();
            assert_eq!(unpack(&packed), Some(secrets));
        }
        assert_eq!(unpack(&[0]), None);
        assert_eq!(unpack(&[0, 2, 7]), None);
    }

    #[tokio::test]
    async fn the_distinct_prefixes_are_those_of_newest_and_oldest_secrets() {
        let (_directory, storage) = fixture::sqlite().await;
        let secrets = [
            (b"aa1".to_vec(), vec![]),
            (b"aa2".to_vec(), vec![b"bb1".to_vec(), b"cc1".to_vec()]),
            (b"dd1".to_vec(), vec![b"bb2".to_vec()]),
        ];
        let inserted = storage.write(move |transaction| async move {
            for (newest, retired) in secrets {
                let webhook = fixture::webhook(Timestamp::UNIX_EPOCH);
                let secrets = Secrets {
                    retired,
                    ..Secrets::new(newest)
                };
                webhooks::insert(&transaction, &webhook, &secrets).await?;
            }
            Ok::<_, Error>(())
        });
        inserted.await.unwrap();

        let mut prefixes = distinct_prefixes(storage.reader(), 2).await.unwrap();

        prefixes.sort();
        assert_eq!(prefixes, [b"aa", b"bb", b"dd"]);
    }
}
