//! The encrypted secrets of the platform itself, by name.

use super::entity::platform_secret::{ActiveModel, Column, Entity};
use crate::prelude::*;

/// A name and an encrypted secret.
pub type StoredSecret = (String, Vec<u8>);

pub async fn find(connection: &impl ConnectionTrait, name: &str) -> Result<Option<Vec<u8>>, Error> {
    let row = Entity::find_by_id(name).one(connection).await?;
    Ok(row.map(|row| row.encrypted_secret))
}

pub async fn list(connection: &impl ConnectionTrait) -> Result<Vec<StoredSecret>, Error> {
    let rows = Entity::find().all(connection).await?.into_iter();
    Ok(rows.map(|row| (row.name, row.encrypted_secret)).collect())
}

/// All secrets, locked until the transaction ends.
pub async fn list_and_lock(transaction: &impl ConnectionTrait) -> Result<Vec<StoredSecret>, Error> {
    let query = Entity::find().order_by_asc(Column::Name).lock_exclusive();
    let rows = query.all(transaction).await?.into_iter();
    Ok(rows.map(|row| (row.name, row.encrypted_secret)).collect())
}

/// Inserts a secret, unless there is one of this name.
pub async fn insert_if_absent(
    transaction: &impl ConnectionTrait,
    secret: StoredSecret,
) -> Result<(), Error> {
    Entity::insert(row(secret))
        .on_conflict(OnConflict::column(Column::Name).do_nothing().to_owned())
        .exec_without_returning(transaction)
        .await?;
    Ok(())
}

/// Replaces the ciphertext of a secret.
pub async fn save(transaction: &impl ConnectionTrait, secret: StoredSecret) -> Result<(), Error> {
    rows::update(transaction, row(secret)).await
}

fn row((name, encrypted_secret): StoredSecret) -> ActiveModel {
    ActiveModel {
        name: Set(name),
        encrypted_secret: Set(encrypted_secret),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[tokio::test]
    async fn a_secret_is_inserted_once_and_listed_under_its_name() {
        let (_directory, storage) = fixture::sqlite().await;
        let written = storage.write(move |transaction| async move {
            for (name, encrypted) in [("a", "first"), ("a", "second"), ("b", "third")] {
                insert_if_absent(&transaction, (name.to_owned(), encrypted.into())).await?;
            }
            save(&transaction, ("b".to_owned(), b"saved".to_vec())).await
        });
        written.await.unwrap();

        let mut listed = list(storage.reader()).await.unwrap();

        listed.sort();
        let stored = [("a", "first"), ("b", "saved")];
        let expected = stored.map(|(name, secret)| (name.to_owned(), secret.as_bytes().to_vec()));
        assert_eq!(listed, expected);
        for (name, secret) in expected {
            let found = find(storage.reader(), &name).await.unwrap();
            assert_eq!(found, Some(secret), "{name}");
        }
        assert_eq!(find(storage.reader(), "c").await.unwrap(), None);
    }
}
