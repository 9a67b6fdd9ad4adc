//! `/api/deliveries`

use std::sync::Arc;

use proto::{
    CreateDeliveryRequest, GetDeliveryRequest,
    deliveries_client::DeliveriesClient,
    iri::{self, Collection},
};
use serde::Serialize;

use crate::{
    core::Repeat,
    error::Error,
    json_ld::{self, Zone},
    report::Report,
    request::Request,
    resources::{
        delivery_draft,
        retail_prices::{ShownPrice, TaxShown},
        tasks::Task,
    },
    routes::{Answer, Gateway},
};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Delivery {
    #[serde(rename = "@context")]
    context: &'static str,
    #[serde(rename = "@id")]
    iri: String,
    #[serde(rename = "@type")]
    ld_type: &'static str,
    id: String,
    pickup: Task,
    dropoff: Task,
    /// Metres.
    distance: u32,
    /// Seconds.
    duration: u32,
    /// There is no such page yet.
    tracking_url: Option<String>,
    price: Option<ShownPrice>,
    cancelled_at: Option<String>,
}

/// `POST /api/deliveries`
pub(crate) async fn create(gateway: Arc<Gateway>, request: Request) -> Answer {
    let call = request.call()?;
    let mut report = Report::default();
    let draft = delivery_draft::read(&request.json()?, &mut report);

    let message = CreateDeliveryRequest {
        delivery: Some(draft),
        violations: report.violations(),
    };
    let delivery = gateway
        .core
        .call(call, Repeat::Harmful, message, |core, message| async {
            DeliveriesClient::new(core).create_delivery(message).await
        })
        .await
        .map_err(|error| report.explain(error))?;

    let delivery = Delivery::try_from(delivery)?;
    json_ld::created(&gateway.public_url, &delivery.iri, &delivery)
}

/// `GET /api/deliveries/{id}`
pub(crate) async fn get(gateway: Arc<Gateway>, request: Request) -> Answer {
    let message = GetDeliveryRequest {
        name: Collection::Deliveries.name(&request.parameter),
    };
    let delivery = gateway
        .core
        .call(
            request.call()?,
            Repeat::Harmless,
            message,
            |core, message| async { DeliveriesClient::new(core).get_delivery(message).await },
        )
        .await?;

    json_ld::ok(&Delivery::try_from(delivery)?)
}

impl TryFrom<proto::Delivery> for Delivery {
    type Error = Error;

    fn try_from(delivery: proto::Delivery) -> Result<Self, Error> {
        let task = |task: Option<proto::Task>| {
            Task::try_from(task.ok_or_else(|| Error::incomplete("a delivery's task"))?)
        };
        let price = delivery
            .price
            .map(|price| ShownPrice::new(price, TaxShown::Included))
            .transpose()?;
        Ok(Self {
            context: "/api/contexts/Delivery",
            iri: iri::of(&delivery.name),
            ld_type: "http://schema.org/ParcelDelivery",
            id: Collection::Deliveries
                .member(&delivery.name)
                .unwrap_or_default()
                .to_owned(),
            pickup: task(delivery.pickup)?,
            dropoff: task(delivery.dropoff)?,
            distance: delivery.distance_meters,
            duration: delivery.duration_seconds,
            tracking_url: None,
            price,
            cancelled_at: Zone::named(&delivery.time_zone)
                .write_optional(delivery.cancel_time.as_ref())?,
        })
    }
}
