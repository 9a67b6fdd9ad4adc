//! Personal data of deliveries: erased by an operator.

use domain::{
    api_client::Scope,
    id::{DeliveryId, StoreId, TaskId},
    telephone,
    violation::Violations,
};
use proto::{erase_deliveries_request::Selection, iri::Collection};
use storage::personal_data::{self, Position};
use tonic::{Request, Response};

use super::{Reply, Services};
use crate::{auth::caller::Caller, error::Error, messages};

/// The tasks that a call searches for a telephone number, and the most of them that it erases.
const SEARCHED_TASKS: u64 = 2000;
const MAX_FOUND: usize = 10;

/// Deliveries to erase, and where the search continues.
type Found = (Vec<(StoreId, DeliveryId)>, Option<Position>);

#[tonic::async_trait]
impl proto::personal_data_server::PersonalData for Services {
    async fn erase_deliveries(
        &self,
        request: Request<proto::EraseDeliveriesRequest>,
    ) -> Reply<proto::EraseDeliveriesResponse> {
        let (caller, request) = Caller::with_scope(request, Scope::Admin)?;

        let (found, next) = self.find_to_erase(&request).await?;
        if !request.dry_run && !found.is_empty() {
            for (store_id, id) in &found {
                self.erase_delivery(&caller, *store_id, *id).await?;
                let name = Collection::Deliveries.name(*id);
                caller.audit("EraseDeliveries", &name, &Response::new(()));
            }
            if let Some(images) = &self.images {
                images.erased.notify_one();
            }
            self.storage
                .truncate_write_ahead_log()
                .await
                .map_err(Error::from)?;
        }

        Ok(Response::new(proto::EraseDeliveriesResponse {
            deliveries: found
                .into_iter()
                .map(|(_, id)| Collection::Deliveries.name(id))
                .collect(),
            next_page_token: next.map(encode).unwrap_or_default(),
        }))
    }
}

impl Services {
    async fn find_to_erase(&self, request: &proto::EraseDeliveriesRequest) -> Result<Found, Error> {
        match &request.selection {
            Some(Selection::Delivery(name)) => {
                let not_found = || Error::NotFound(name.clone());
                let id = DeliveryId(messages::id_in(Collection::Deliveries, name)?);
                let store = storage::deliveries::find_store(self.storage.reader(), id).await?;
                Ok((vec![(store.ok_or_else(not_found)?, id)], None))
            }
            Some(Selection::Telephone(number)) => {
                let mut violations = Violations::new();
                let parsed = telephone::parse(number, self.config.platform.country.as_str());
                let number = violations
                    .check("telephone", "INVALID_TELEPHONE", parsed)
                    .flatten();
                let after = decode(&request.page_token, &mut violations);
                match number {
                    Some(number) if violations.is_empty() => {
                        self.search_telephone(&number, after).await
                    }
                    _ => Err(required_or(violations)),
                }
            }
            None => Err(required_or(Violations::new())),
        }
    }

    async fn search_telephone(
        &self,
        number: &str,
        after: Option<Position>,
    ) -> Result<Found, Error> {
        let reader = self.storage.reader();
        let (mut tasks, mut next) =
            personal_data::search_telephone(reader, number, after, SEARCHED_TASKS).await?;
        if tasks.len() > MAX_FOUND {
            tasks.truncate(MAX_FOUND);
            next = tasks.last().map(|(position, _)| *position);
        }
        let mut found = Vec::new();
        for (position, id) in tasks {
            let delivery = (position.store_id, id);
            if !found.contains(&delivery) {
                found.push(delivery);
            }
        }
        Ok((found, next))
    }

    async fn erase_delivery(
        &self,
        caller: &Caller,
        store_id: StoreId,
        id: DeliveryId,
    ) -> Result<(), Error> {
        // Before the tasks: an interrupted search for a telephone number finds the delivery again.
        self.erase_stored_responses(store_id, id).await?;
        let (now, audit) = (self.clock.now(), caller.audit.clone());
        self.storage
            .write(move |transaction| async move {
                let name = Collection::Deliveries.name(id);
                audit.record(&transaction, Some(store_id), name).await?;
                personal_data::erase(&transaction, store_id, id, now).await?;
                personal_data::erase_response_bodies(&transaction, store_id, id).await?;
                Ok::<_, Error>(())
            })
            .await?;
        // Again, for a response to an idempotency key that was stored meanwhile.
        self.erase_stored_responses(store_id, id).await
    }

    async fn erase_stored_responses(&self, store_id: StoreId, id: DeliveryId) -> Result<(), Error> {
        let reader = self.storage.reader();
        let delivery = storage::deliveries::find(reader, store_id, id).await?;
        let store = storage::stores::find(reader, store_id).await?;
        let (Some(mut delivery), Some(store)) = (delivery, store) else {
            return Ok(());
        };
        delivery.pickup.erase();
        delivery.dropoff.erase();
        let created_at = delivery.created_at;
        let erased = messages::delivery(delivery, &store, &self.config.public_url);
        self.idempotency
            .erase_responses(store_id, id, &erased, created_at)
            .await
    }
}

fn required_or(mut violations: Violations) -> Error {
    if violations.is_empty() {
        violations.add(
            "telephone",
            "REQUIRED",
            "is required, unless delivery is given",
        );
    }
    Error::Invalid(violations)
}

fn encode(position: Position) -> String {
    format!("{}/{}", position.store_id.0, position.task_id.0)
}

/// None for the first page.
fn decode(token: &str, violations: &mut Violations) -> Option<Position> {
    if token.is_empty() {
        return None;
    }
    let position = token.split_once('/').and_then(|(store_id, task_id)| {
        Some(Position {
            store_id: StoreId(store_id.parse().ok()?),
            task_id: TaskId(task_id.parse().ok()?),
        })
    });
    violations.check(
        "page_token",
        "INVALID_CURSOR",
        position.ok_or("is not a token of this search"),
    )
}
