//! `/api/deliveries`

pub(crate) mod draft;
mod filters;

use std::{mem, sync::Arc};

use proto::{
    AssertDeliveryRequest, CancelDeliveryRequest, CreateDeliveryRequest, GetDeliveryRequest,
    deliveries_client::DeliveriesClient,
    iri::{self, Collection},
    limits::MAX_PAGE_BYTES,
};
use serde::Serialize;

use crate::{
    body_reader::ViolationCollector,
    collection::{self, Pagination},
    core_pool::Retry,
    error::Error,
    gateway::{Gateway, HandlerResult},
    idempotency,
    json_ld::{self, StoreTimeZone},
    request::Request,
    resources::{
        prices::{self, Price, TaxDisplay},
        tasks::Task,
    },
};

const CONTEXT: &str = "/api/contexts/Delivery";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Delivery {
    /// None in lists.
    #[serde(rename = "@context", skip_serializing_if = "Option::is_none")]
    context: Option<&'static str>,
    /// None in a preview, like `id`.
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
    distance_source: Option<&'static str>,
    /// Null until there is a tracking page.
    tracking_url: Option<String>,
    price: Option<DeliveryPrice>,
    cancelled_at: Option<String>,
    external_reference: Option<String>,
    /// Of the request that creates or validates the delivery; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Warning>,
}

/// A part of a valid request that has no effect or may be a mistake.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Warning {
    property_path: String,
    message: String,
    code: String,
}

/// The price of a delivery.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DeliveryPrice {
    #[serde(flatten)]
    price: Price,
    /// The IRI of the quote used.
    retail_price: Option<String>,
}

/// `POST /api/deliveries`
pub(crate) async fn create(gateway: Arc<Gateway>, request: Request) -> HandlerResult {
    let options = request.call_options()?;
    let mut violations = request.violations();
    let key = idempotency::Key::from_request(&request, &mut violations);
    let body = request.json()?;
    let draft = draft::read(&body, &mut violations);
    let idempotency = key.map(|key| key.with_body(&body));

    let retry = Retry::safe_if_idempotent(idempotency.as_ref());
    let message = CreateDeliveryRequest {
        delivery: Some(draft),
        violations: violations.to_proto(),
        idempotency,
    };
    let response = gateway
        .core
        .call_with_metadata(options, retry, message, |core, message| async {
            DeliveriesClient::new(core).create_delivery(message).await
        })
        .await
        .map_err(|error| violations.translate(error))?;

    idempotency::respond(response, |delivery| {
        let iri = iri::of(&delivery.name);
        let delivery = Delivery::with_warnings(delivery, &violations)?.with_context();
        json_ld::created(&gateway.public_url, &iri, &delivery)
    })
}

/// `POST /api/deliveries/assert`: validates a delivery without creating it. Returns a preview: the
/// delivery without IRI and ID.
pub(crate) async fn assert(gateway: Arc<Gateway>, request: Request) -> HandlerResult {
    let options = request.call_options()?;
    let mut violations = request.violations();
    let draft = draft::read(&request.json()?, &mut violations);

    let message = AssertDeliveryRequest {
        delivery: Some(draft),
        violations: violations.to_proto(),
    };
    let preview = gateway
        .core
        .call(options, Retry::Safe, message, |core, message| async {
            DeliveriesClient::new(core).assert_delivery(message).await
        })
        .await
        .map_err(|error| violations.translate(error))?;

    json_ld::ok(&Delivery::with_warnings(preview, &violations)?.with_context())
}

/// `GET /api/deliveries/{id}`
pub(crate) async fn get(gateway: Arc<Gateway>, request: Request) -> HandlerResult {
    let message = GetDeliveryRequest {
        name: Collection::Deliveries.name(&request.parameter),
    };
    let delivery = gateway
        .core
        .read(request.call_options()?, message, |core, message| async {
            DeliveriesClient::new(core).get_delivery(message).await
        })
        .await?;

    json_ld::ok(&Delivery::try_from(delivery)?.with_context())
}

/// `GET /api/deliveries`: newest first, paginated.
pub(crate) async fn list(gateway: Arc<Gateway>, request: Request) -> HandlerResult {
    let mut violations = request.violations();
    let message = filters::read(&request, &mut violations);
    let cursor = message.page_token.clone();
    let page = gateway
        .core
        .read(request.call_options()?, message, |core, message| async {
            DeliveriesClient::new(core)
                .max_decoding_message_size(MAX_PAGE_BYTES)
                .list_deliveries(message)
                .await
        })
        .await
        .map_err(|error| violations.translate(error))?;

    let pagination = Pagination {
        path: "/api/deliveries",
        parameter: "cursor",
        query: filters::without_cursor(&request),
        cursor,
        previous: page.previous_page_token,
        next: page.next_page_token,
    };
    let deliveries = page.deliveries.into_iter().map(Delivery::try_from);
    json_ld::ok(&collection::Collection::page(
        CONTEXT,
        "/api/deliveries",
        deliveries.collect::<Result<Vec<_>, _>>()?,
        &pagination,
    ))
}

/// `DELETE /api/deliveries/{id}`
pub(crate) async fn cancel(gateway: Arc<Gateway>, request: Request) -> HandlerResult {
    let options = request.call_options()?;
    request.check_query()?;
    let message = CancelDeliveryRequest {
        name: Collection::Deliveries.name(&request.parameter),
    };
    gateway
        .core
        .call(options, Retry::Safe, message, |core, message| async {
            DeliveriesClient::new(core).cancel_delivery(message).await
        })
        .await?;

    Ok(json_ld::no_content())
}

impl Delivery {
    fn with_context(self) -> Self {
        Self {
            context: Some(CONTEXT),
            ..self
        }
    }

    /// A delivery with the warnings about the body: its unknown members, and those of core.
    fn with_warnings(
        mut delivery: proto::Delivery,
        body: &ViolationCollector,
    ) -> Result<Self, Error> {
        let ignored = body.unknown_members().map(|property_path| Warning {
            property_path,
            message: "is ignored: there is no such member".to_owned(),
            code: "unknown_member".to_owned(),
        });
        let warnings = mem::take(&mut delivery.warnings);
        let warnings = warnings.into_iter().map(|warning| Warning {
            property_path: body.path(&warning.field),
            message: warning.description,
            code: warning.reason.to_ascii_lowercase(),
        });
        Ok(Self {
            warnings: ignored.chain(warnings).collect(),
            ..Self::try_from(delivery)?
        })
    }
}

impl TryFrom<proto::Delivery> for Delivery {
    type Error = Error;

    fn try_from(delivery: proto::Delivery) -> Result<Self, Error> {
        let task = |task: Option<proto::Task>| {
            Task::try_from(task.ok_or_else(|| Error::incomplete("a delivery's task"))?)
        };
        let id = Collection::Deliveries.last_segment(&delivery.name);
        let distance_source = prices::distance_source(delivery.distance_source());
        let price = delivery
            .price
            .map(|price| Price::new(price, TaxDisplay::Included))
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
            cancelled_at: StoreTimeZone::named(&delivery.time_zone)
                .write_optional(delivery.cancel_time.as_ref())?,
            external_reference: delivery.external_reference,
            warnings: Vec::new(),
        })
    }
}
