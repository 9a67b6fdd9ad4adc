//! The audit: what operators and dispatch changed, and whose personal data they read. Rows are only added, until
//! their retention.

use domain::id::{ApiClientId, StoreId};

use super::{
    entity::{
        Instant,
        audit_event::{ActiveModel, Column, Entity, Model},
    },
    pages::{self, Start},
};
use crate::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    pub id: Uuid,
    /// When the call arrived.
    pub created_at: Timestamp,
    pub api_client_id: ApiClientId,
    /// That of the connection; `None` for a call within the process.
    pub address: Option<String>,
    pub rpc: String,
    /// The name of a resource, or of a collection.
    pub resource: String,
    /// The store of the resource.
    pub store_id: Option<StoreId>,
}

/// Which rows are listed: those for which all that is given is so.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub api_client_id: Option<ApiClientId>,
    pub rpc: Option<String>,
    pub resource: Option<String>,
    pub store_id: Option<StoreId>,
    pub since: Option<Timestamp>,
}

pub async fn insert(
    transaction: &impl ConnectionTrait,
    events: impl IntoIterator<Item = AuditEvent>,
) -> Result<(), Error> {
    let mut rows = events.into_iter().map(row).peekable();
    if rows.peek().is_some() {
        let insert = Entity::insert_many(rows);
        insert.exec_without_returning(transaction).await?;
    }
    Ok(())
}

/// A page, newest first, and whether older rows follow.
pub async fn list(
    connection: &impl ConnectionTrait,
    filter: Filter,
    start: Start,
    size: u32,
) -> Result<(Vec<AuditEvent>, bool), Error> {
    let query = Entity::find()
        .apply_if(filter.api_client_id, |query, id| {
            query.filter(Column::ApiClientId.eq(id.0))
        })
        .apply_if(filter.rpc, |query, rpc| query.filter(Column::Rpc.eq(rpc)))
        .apply_if(filter.resource, |query, resource| {
            query.filter(Column::Resource.eq(resource))
        })
        .apply_if(filter.store_id, |query, id| {
            query.filter(Column::StoreId.eq(id.0))
        })
        .apply_if(filter.since, |query, since| {
            query.filter(Column::CreatedAt.gte(Instant::from(since)))
        });
    let query = pages::start_at(query, Column::CreatedAt, Column::Id, start);
    let (rows, has_more) = pages::read(connection, query, start, size).await?;
    let events = rows.into_iter().map(AuditEvent::try_from);
    Ok((events.collect::<Result<_, _>>()?, has_more))
}

/// Deletes the oldest rows before an instant, at most `limit`. Returns how many. Concurrent cores skip each other's.
pub async fn remove_oldest(
    transaction: &impl ConnectionTrait,
    before: Timestamp,
    limit: u64,
) -> Result<u64, Error> {
    let lock = match transaction.get_database_backend() {
        DbBackend::Postgres => " FOR UPDATE SKIP LOCKED",
        _ => "",
    };
    let delete = format!(
        "DELETE FROM audit_events WHERE id IN (
            SELECT id FROM audit_events WHERE created_at < $1 ORDER BY created_at, id LIMIT $2{lock}
        )"
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values = [Instant::from(before).into(), limit.into()];
    rows::execute(transaction, &delete, values).await
}

fn row(event: AuditEvent) -> ActiveModel {
    ActiveModel {
        id: Set(event.id),
        created_at: Set(event.created_at.into()),
        api_client_id: Set(event.api_client_id.0),
        address: Set(event.address),
        rpc: Set(event.rpc),
        resource: Set(event.resource),
        store_id: Set(event.store_id.map(|id| id.0)),
    }
}

impl TryFrom<Model> for AuditEvent {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Error> {
        Ok(Self {
            id: row.id,
            created_at: row.created_at.try_into()?,
            api_client_id: ApiClientId(row.api_client_id),
            address: row.address,
            rpc: row.rpc,
            resource: row.resource,
            store_id: row.store_id.map(StoreId),
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::{fixture, pages::Cursor};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn event(hour: i64) -> AuditEvent {
        AuditEvent {
            id: Uuid::now_v7(),
            created_at: NOW + SignedDuration::from_hours(hour),
            api_client_id: ApiClientId::new(),
            address: (hour > 0).then(|| "192.0.2.1".to_owned()),
            rpc: format!("Rpc{hour}"),
            resource: format!("stores/{hour}"),
            store_id: (hour > 0).then(StoreId::new),
        }
    }

    #[tokio::test]
    async fn rows_are_listed_by_each_filter_in_pages_and_removed_in_order() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let events: Vec<_> = (0..3).map(event).collect();
            let added = events.clone();
            let write = storage.write(move |transaction| async move {
                insert(&transaction, added).await?;
                insert(&transaction, []).await
            });
            write.await.unwrap();
            let read = async |filter| {
                let page = list(storage.reader(), filter, Start::Newest, 9)
                    .await
                    .unwrap();
                assert!(!page.1);
                page.0
            };

            let newest: Vec<_> = events.iter().rev().cloned().collect();
            assert_eq!(read(Filter::default()).await, newest);
            let (page, has_more) = list(storage.reader(), Filter::default(), Start::Newest, 2)
                .await
                .unwrap();
            assert_eq!((&page[..], has_more), (&newest[..2], true));
            let start = Start::OlderThan(Cursor {
                created_at: page[1].created_at,
                id: page[1].id,
            });
            let rest = list(storage.reader(), Filter::default(), start, 2).await;
            assert_eq!(rest.unwrap(), (newest[2..].to_vec(), false));
            let second = &events[1];
            for filter in [
                Filter {
                    api_client_id: Some(second.api_client_id),
                    ..Filter::default()
                },
                Filter {
                    rpc: Some(second.rpc.clone()),
                    ..Filter::default()
                },
                Filter {
                    resource: Some(second.resource.clone()),
                    ..Filter::default()
                },
                Filter {
                    store_id: second.store_id,
                    ..Filter::default()
                },
            ] {
                assert_eq!(read(filter).await, events[1..2]);
            }
            let since = Some(second.created_at);
            assert_eq!(
                read(Filter {
                    since,
                    ..Filter::default()
                })
                .await,
                newest[..2]
            );

            let remove = async |limit| {
                let before = events[2].created_at;
                let write = storage.write(move |transaction| async move {
                    remove_oldest(&transaction, before, limit).await
                });
                write.await.unwrap()
            };
            assert_eq!(
                [remove(1).await, remove(9).await, remove(9).await],
                [1, 1, 0]
            );
            assert_eq!(read(Filter::default()).await, events[2..]);
        }
    }
}
