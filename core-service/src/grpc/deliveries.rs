//! Deliveries: created in one transaction with their tasks.

use proto::iri::Collection;
use tonic::{Request, Response, Status};

use super::{Core, messages};
use crate::{
    domain::{api_client::Scope, delivery::Delivery, id::DeliveryId},
    error::Error,
    storage,
};

#[tonic::async_trait]
impl proto::deliveries_server::Deliveries for Core {
    async fn create_delivery(
        &self,
        request: Request<proto::CreateDeliveryRequest>,
    ) -> Result<Response<proto::Delivery>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Deliveries)?;
        let store = caller.store()?;

        let request = request.into_inner();
        let planned = self
            .plan(&caller, request.delivery, request.violations)
            .await?;

        // A list that has no price for it does not stand in the way of a delivery.
        let price = planned.price_list.as_ref().and_then(|price_list| {
            price_list
                .calculate(&planned.plan, &store.display_name, &planned.now)
                .price
        });
        let now = planned.now.timestamp();
        let delivery = Delivery::new(store.id, planned.plan, price, now);

        let reply = messages::delivery(&delivery, store);
        let booking = planned.booking;
        let created = self
            .storage
            .write(move |transaction| {
                let delivery = delivery.clone();
                Box::pin(async move {
                    if let Some(booking) = booking
                        && !storage::slot_bookings::book(transaction, booking).await?
                    {
                        return Ok(false);
                    }
                    storage::deliveries::insert(transaction, &delivery).await?;
                    Ok(true)
                })
            })
            .await?;
        if let (false, Some(booking)) = (created, booking) {
            return Err(self.slot_is_full(store, booking.window).await.into());
        }

        Ok(Response::new(reply))
    }

    async fn get_delivery(
        &self,
        request: Request<proto::GetDeliveryRequest>,
    ) -> Result<Response<proto::Delivery>, Status> {
        let caller = self.authenticate(request.metadata()).await?;
        caller.require(Scope::Deliveries)?;
        let store = caller.store()?;

        let name = request.into_inner().name;
        let not_found = || Error::NotFound { name: name.clone() };
        let id = Collection::Deliveries.id(&name).ok_or_else(not_found)?;
        let delivery = storage::deliveries::find(self.storage.reader(), store.id, DeliveryId(id))
            .await
            .map_err(Error::from)?
            .ok_or_else(not_found)?;

        Ok(Response::new(messages::delivery(&delivery, store)))
    }
}
