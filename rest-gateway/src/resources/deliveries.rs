//! `/api/deliveries`

use std::sync::Arc;

use proto::{
    AssertDeliveryRequest, CancelDeliveryRequest, CreateDeliveryRequest, GetDeliveryRequest,
    deliveries_client::DeliveriesClient,
    iri::{self, Collection},
};
use serde::Serialize;

use crate::{
    collection::{self, Position},
    core::Repeat,
    error::Error,
    idempotency,
    json_ld::{self, Zone},
    report::Report,
    request::Request,
    resources::{
        delivery_draft, delivery_filters,
        retail_prices::{ShownPrice, TaxShown, shown_distance_source},
        tasks::Task,
    },
    routes::{Answer, Gateway},
};

const CONTEXT: &str = "/api/contexts/Delivery";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Delivery {
    /// None in a list.
    #[serde(rename = "@context", skip_serializing_if = "Option::is_none")]
    context: Option<&'static str>,
    /// None in a preview, nor an `id`.
    #[serde(rename = "@id", skip_serializing_if = "Option::is_none")]
    iri: Option<String>,
    #[serde(rename = "@type")]
    ld_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    pickup: Task,
    dropoff: Task,
    /// Metres.
    distance: u32,
    /// Seconds.
    duration: u32,
    /// Who says how far it is.
    distance_source: Option<&'static str>,
    /// There is no such page yet.
    tracking_url: Option<String>,
    price: Option<DeliveryPrice>,
    cancelled_at: Option<String>,
    external_reference: Option<String>,
}

/// What a delivery costs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DeliveryPrice {
    #[serde(flatten)]
    price: ShownPrice,
    /// The promise it is charged by.
    retail_price: Option<String>,
}

/// `POST /api/deliveries`
pub(crate) async fn create(gateway: Arc<Gateway>, request: Request) -> Answer {
    let call = request.call()?;
    let mut report = Report::default();
    let key = idempotency::Key::of(&request, &mut report);
    let body = request.json()?;
    let draft = delivery_draft::read(&body, &mut report);
    let idempotency = key.map(|key| key.with_body(&body));

    let repeat = Repeat::with(idempotency.as_ref());
    let message = CreateDeliveryRequest {
        delivery: Some(draft),
        violations: report.violations(),
        idempotency,
    };
    let response = gateway
        .core
        .call_in_full(call, repeat, message, |core, message| async {
            DeliveriesClient::new(core).create_delivery(message).await
        })
        .await
        .map_err(|error| report.explain(error))?;

    idempotency::answer(response, |delivery| {
        let iri = iri::of(&delivery.name);
        let delivery = Delivery::try_from(delivery)?.alone();
        json_ld::created(&gateway.public_url, &iri, &delivery)
    })
}

/// `POST /api/deliveries/assert`: what creating it would answer, as a blank node.
pub(crate) async fn assert(gateway: Arc<Gateway>, request: Request) -> Answer {
    let call = request.call()?;
    let mut report = Report::default();
    let draft = delivery_draft::read(&request.json()?, &mut report);

    let message = AssertDeliveryRequest {
        delivery: Some(draft),
        violations: report.violations(),
    };
    let preview = gateway
        .core
        .call(call, Repeat::Harmless, message, |core, message| async {
            DeliveriesClient::new(core).assert_delivery(message).await
        })
        .await
        .map_err(|error| report.explain(error))?;

    json_ld::ok(&Delivery::try_from(preview)?.alone())
}

/// `GET /api/deliveries/{id}`
pub(crate) async fn get(gateway: Arc<Gateway>, request: Request) -> Answer {
    let message = GetDeliveryRequest {
        name: Collection::Deliveries.name(&request.parameter),
    };
    let delivery = gateway
        .core
        .read(&request, message, |core, message| async {
            DeliveriesClient::new(core).get_delivery(message).await
        })
        .await?;

    json_ld::ok(&Delivery::try_from(delivery)?.alone())
}

/// `GET /api/deliveries`: newest first, a page at a time.
pub(crate) async fn list(gateway: Arc<Gateway>, request: Request) -> Answer {
    let mut report = Report::default();
    let message = delivery_filters::read(&request, &mut report);
    let cursor = message.page_token.clone();
    let page = gateway
        .core
        .read(&request, message, |core, message| async {
            DeliveriesClient::new(core).list_deliveries(message).await
        })
        .await
        .map_err(|error| report.explain(error))?;

    let position = Position {
        parameter: "cursor",
        query: delivery_filters::without_cursor(&request),
        cursor,
        previous: page.previous_page_token,
        next: page.next_page_token,
    };
    let deliveries = page.deliveries.into_iter().map(Delivery::try_from);
    json_ld::ok(&collection::Collection::page(
        CONTEXT,
        "/api/deliveries",
        deliveries.collect::<Result<Vec<_>, _>>()?,
        &position,
    ))
}

/// `DELETE /api/deliveries/{id}`
pub(crate) async fn cancel(gateway: Arc<Gateway>, request: Request) -> Answer {
    let call = request.call()?;
    let message = CancelDeliveryRequest {
        name: Collection::Deliveries.name(&request.parameter),
    };
    gateway
        .core
        .call(call, Repeat::Harmless, message, |core, message| async {
            DeliveriesClient::new(core).cancel_delivery(message).await
        })
        .await?;

    Ok(json_ld::gone())
}

impl Delivery {
    fn alone(self) -> Self {
        Self {
            context: Some(CONTEXT),
            ..self
        }
    }
}

impl TryFrom<proto::Delivery> for Delivery {
    type Error = Error;

    fn try_from(delivery: proto::Delivery) -> Result<Self, Error> {
        let task = |task: Option<proto::Task>| {
            Task::try_from(task.ok_or_else(|| Error::incomplete("a delivery's task"))?)
        };
        let id = Collection::Deliveries.member(&delivery.name);
        let distance_source = shown_distance_source(delivery.distance_source());
        let price = delivery
            .price
            .map(|price| ShownPrice::new(price, TaxShown::Included))
            .transpose()?
            .map(|price| DeliveryPrice {
                price,
                retail_price: Some(&delivery.retail_price)
                    .filter(|name| !name.is_empty())
                    .map(|name| iri::of(name)),
            });
        Ok(Self {
            context: None,
            iri: id.map(|_| iri::of(&delivery.name)),
            ld_type: "http://schema.org/ParcelDelivery",
            id: id.map(str::to_owned),
            pickup: task(delivery.pickup)?,
            dropoff: task(delivery.dropoff)?,
            distance: delivery.distance_meters,
            duration: delivery.duration_seconds,
            distance_source,
            tracking_url: None,
            price,
            cancelled_at: Zone::named(&delivery.time_zone)
                .write_optional(delivery.cancel_time.as_ref())?,
            external_reference: delivery.external_reference,
        })
    }
}
