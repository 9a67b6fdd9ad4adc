//! The encrypted secrets of the platform itself, by name.

use super::entity::platform_secret::{ActiveModel, Column, Entity, Model};
use crate::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSecret {
    pub name: String,
    pub encrypted: Vec<u8>,
}

pub async fn find(connection: &impl ConnectionTrait, name: &str) -> Result<Option<Vec<u8>>, Error> {
    let row = Entity::find_by_id(name).one(connection).await?;
    Ok(row.map(|row| row.encrypted_secret))
}

pub async fn list(connection: &impl ConnectionTrait) -> Result<Vec<StoredSecret>, Error> {
    rows::all(connection, Entity::find()).await
}

/// All secrets, locked until the transaction ends.
pub async fn list_and_lock(transaction: &impl ConnectionTrait) -> Result<Vec<StoredSecret>, Error> {
    let query = Entity::find().order_by_asc(Column::Name).lock_exclusive();
    rows::all(transaction, query).await
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

fn row(secret: StoredSecret) -> ActiveModel {
    ActiveModel {
        name: Set(secret.name),
        encrypted_secret: Set(secret.encrypted),
    }
}

impl TryFrom<Model> for StoredSecret {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Error> {
        Ok(Self {
            name: row.name,
            encrypted: row.encrypted_secret,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn secret(name: &str, encrypted: &str) -> StoredSecret {
        StoredSecret {
            name: name.to_owned(),
            encrypted: encrypted.into(),
        }
    }

    #[tokio::test]
    async fn a_secret_is_inserted_once_and_listed_under_its_name() {
        let (_directory, storage) = fixture::sqlite().await;
        let written = storage.write(move |transaction| async move {
            for (name, encrypted) in [("a", "first"), ("a", "second"), ("b", "third")] {
                insert_if_absent(&transaction, secret(name, encrypted)).await?;
            }
            save(&transaction, secret("b", "saved")).await
        });
        written.await.unwrap();

        let mut listed = list(storage.reader()).await.unwrap();

        listed.sort_by(|one, other| one.name.cmp(&other.name));
        let expected = [secret("a", "first"), secret("b", "saved")];
        assert_eq!(listed, expected);
        for StoredSecret { name, encrypted } in expected {
            let found = find(storage.reader(), &name).await.unwrap();
            assert_eq!(found, Some(encrypted), "{name}");
        }
        assert_eq!(find(storage.reader(), "c").await.unwrap(), None);
    }
}
