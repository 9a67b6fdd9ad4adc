//! `/api/deliveries`, and the price and the distance source in them and in retail prices.

pub(crate) mod draft;

use std::mem;

use proto::{
    AssertDeliveryRequest, CancelDeliveryRequest, CreateDeliveryRequest, DistanceSource,
    GetDeliveryRequest, ListDeliveriesRequest,
    deliveries_client::DeliveriesClient,
    delivery::State,
    iri::{self, Collection},
    task::Status,
};
use serde::Serialize;
use url::form_urlencoded;

use crate::{
    core_pool::rpc,
    error::{Error, Violation},
    representation::{
        collection::{self, ORDER, PAGE, Pagination, read_choice, read_page_size, read_single},
        json_ld::{self, Node, StoreTimeZone},
        language,
    },
    request::{self, HandlerResult, Request},
    resources::tasks::{Task, TaskView},
};

const CONTEXT: &str = "/api/contexts/Delivery";

/// The query parameter of a page.
const CURSOR: &str = "cursor";

/// The words of the states.
const STATES: [(&str, State); 9] = [
    ("created", State::Created),
    ("assigned", State::Assigned),
    ("started", State::Started),
    ("picked", State::Picked),
    ("in_transit", State::InTransit),
    ("dropped", State::Dropped),
    ("failed", State::Failed),
    ("completed", State::Completed),
    ("cancelled", State::Cancelled),
];

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Delivery {
    #[serde(flatten)]
    node: Node,
    state: &'static str,
    pickup: Task,
    dropoff: Task,
    /// Metres.
    distance: u32,
    /// Seconds.
    duration: u32,
    distance_source: Option<&'static str>,
    /// The page for the recipient; null if there is none.
    tracking_url: Option<String>,
    price: Option<DeliveryPrice>,
    cancelled_at: Option<String>,
    external_reference: Option<String>,
    /// Of the request that creates or validates the delivery; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Violation>,
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
pub(crate) async fn create(mut request: Request) -> HandlerResult {
    let message = CreateDeliveryRequest {
        delivery: Some(draft::take(&mut request)),
        violations: request.violations.to_proto(),
        idempotency: request.idempotency.clone(),
        store: String::new(),
    };
    let response = request
        .write(message, rpc!(DeliveriesClient.create_delivery))
        .await?;

    request::respond(response, |delivery| {
        let location = request.url_of(&delivery.name);
        show_with_warnings(delivery, &request, |delivery| {
            json_ld::created(&location, CONTEXT, delivery)
        })
    })
}

/// `POST /api/deliveries/assert`: validates a delivery without creating it. Returns a preview: the
/// delivery without IRI and ID.
pub(crate) async fn assert(mut request: Request) -> HandlerResult {
    let message = AssertDeliveryRequest {
        delivery: Some(draft::take(&mut request)),
        violations: request.violations.to_proto(),
        store: String::new(),
    };
    let preview = request
        .call(message, rpc!(DeliveriesClient.assert_delivery))
        .await?;

    show_with_warnings(preview, &request, |preview| json_ld::ok(CONTEXT, preview))
}

/// Shows a delivery with the warnings about the body, its unknown members and those of core, and declares
/// their language.
fn show_with_warnings(
    mut delivery: proto::Delivery,
    request: &Request,
    show: impl FnOnce(&Delivery) -> HandlerResult,
) -> HandlerResult {
    let (warnings, language) = request.warnings(mem::take(&mut delivery.warnings));
    let response = show(&Delivery {
        warnings,
        // Its tasks are to be done.
        ..Delivery::of(delivery, TaskView::default())?
    })?;
    Ok(match language {
        Some(language) => language::declare(response, Some(&language)),
        None => response,
    })
}

/// `GET /api/deliveries/{id}`
pub(crate) async fn get(request: Request) -> HandlerResult {
    let name = Collection::Deliveries.name(&request.parameter);
    let message = GetDeliveryRequest { name };
    let get = request.send(message, true, rpc!(DeliveriesClient.get_delivery));
    let response = get.await?;

    let view = TaskView::of(&response);
    json_ld::ok(CONTEXT, &Delivery::of(response.into_inner(), view)?)
}

/// `GET /api/deliveries`: newest first, paginated.
pub(crate) async fn list(mut request: Request) -> HandlerResult {
    let message = read_filters(&mut request);
    let cursor = message.page_token.clone();
    let list = request.send(message, true, rpc!(DeliveriesClient.list_deliveries));
    let response = list.await?;

    let view = TaskView::of(&response);
    let page = response.into_inner();
    let pagination = Pagination {
        operation: request.operation,
        parameter: CURSOR,
        query: query_without_cursor(&request),
        cursor,
        previous: page.previous_page_token,
        next: page.next_page_token,
    };
    let deliveries = page.deliveries.into_iter();
    let deliveries = deliveries.map(|delivery| Delivery::of(delivery, view));
    let page = collection::Collection::page(
        "/api/deliveries".to_owned(),
        deliveries.collect::<Result<_, _>>()?,
        &pagination,
    );
    json_ld::ok(CONTEXT, &page)
}

/// Reads the filters and the page of a list. Their names are those of API Platform's filters, which
/// existing clients send.
fn read_filters(request: &mut Request) -> ListDeliveriesRequest {
    ListDeliveriesRequest {
        page_size: read_page_size(request),
        page_token: read_single(request, "page_token", CURSOR).unwrap_or_default(),
        created_from: read_single(request, "created_from", "createdAt[after]"),
        created_until: read_single(request, "created_until", "createdAt[before]"),
        dropoff_from: read_single(request, "dropoff_from", "dropoff.before[after]"),
        dropoff_until: read_single(request, "dropoff_until", "dropoff.before[before]"),
        status: read_choice(
            request,
            "status",
            "status",
            &[("TODO", Status::Todo.into()), ("DONE", Status::Done.into())],
        ),
        state: read_choice(request, "state", "state", &STATES).map(Into::into),
        cancelled: read_choice(
            request,
            "cancelled",
            "exists[cancelledAt]",
            &[("true", true), ("false", false), ("1", true), ("0", false)],
        ),
        external_reference: read_reference(request),
        violations: request.violations.to_proto(),
        ..ListDeliveriesRequest::default()
    }
}

fn read_reference(request: &mut Request) -> Option<String> {
    let field = "external_reference";
    let reference = read_single(request, field, "externalReference")?;
    if reference.is_empty() {
        request
            .violations
            .add(field, "REQUIRED", "must not be empty");
    }
    Some(reference)
}

/// The query without its cursor, for links to other pages.
fn query_without_cursor(request: &Request) -> String {
    let query = request.parts.uri.query().unwrap_or_default();
    let others = form_urlencoded::parse(query.as_bytes())
        .filter(|(name, _)| ![CURSOR, PAGE, ORDER].contains(&&**name));
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(others)
        .finish()
}

/// `DELETE /api/deliveries/{id}`
pub(crate) async fn cancel(request: Request) -> HandlerResult {
    let name = Collection::Deliveries.name(&request.parameter);
    let message = CancelDeliveryRequest {
        name,
        idempotency: request.idempotency.clone(),
        ..CancelDeliveryRequest::default()
    };
    // Without a key, too, it can be repeated.
    let cancel = request.send(message, true, rpc!(DeliveriesClient.cancel_delivery));
    request::respond(cancel.await?, |_| Ok(json_ld::no_content()))
}

impl Delivery {
    fn of(delivery: proto::Delivery, view: TaskView) -> Result<Self, Error> {
        let task = |task: Option<proto::Task>| {
            let task = task.ok_or_else(|| Error::incomplete("a delivery's task"))?;
            Task::of(task, view)
        };
        let state = state(&delivery)?;
        let distance_source = distance_source(delivery.distance_source());
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
            node: Node::new(
                "http://schema.org/ParcelDelivery",
                Collection::Deliveries,
                &delivery.name,
            ),
            state,
            pickup: task(delivery.pickup)?,
            dropoff: task(delivery.dropoff)?,
            distance: delivery.distance_meters,
            duration: delivery.duration_seconds,
            distance_source,
            tracking_url: Some(delivery.tracking_url).filter(|url| !url.is_empty()),
            price,
            cancelled_at: StoreTimeZone::named(&delivery.time_zone)
                .write_optional(delivery.cancel_time.as_ref())?,
            external_reference: delivery.external_reference,
            warnings: Vec::new(),
        })
    }
}

/// The word of a delivery's state. A core of an earlier version does not send the state: its tasks are to be done, done
/// or cancelled.
fn state(delivery: &proto::Delivery) -> Result<&'static str, Error> {
    let is_done =
        |task: Option<&proto::Task>| task.is_some_and(|task| task.status() == Status::Done);
    let tasks = [&delivery.pickup, &delivery.dropoff].map(|task| is_done(task.as_ref()));
    let state = match (delivery.state(), tasks) {
        (State::Unspecified, _) if delivery.cancel_time.is_some() => State::Cancelled,
        (State::Unspecified, [true, true]) => State::Completed,
        (State::Unspecified, [false, true]) => State::Dropped,
        (State::Unspecified, [true, false]) => State::Picked,
        (State::Unspecified, [false, false]) => State::Created,
        (state, _) => state,
    };
    let known = STATES.iter().find(|(_, known)| *known == state);
    let word = known.map(|(word, _)| *word);
    word.ok_or_else(|| Error::incomplete("a delivery's state"))
}

/// A price, in minor units of its currency.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Price {
    amount: i64,
    currency: String,
    tax: Tax,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Tax {
    amount: i64,
    included: bool,
}

/// Whether `amount` includes the tax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaxDisplay {
    Included,
    Excluded,
}

impl Price {
    pub(super) fn new(price: proto::Price, tax_display: TaxDisplay) -> Result<Self, Error> {
        let amount = match tax_display {
            TaxDisplay::Included => price
                .net_amount
                .checked_add(price.tax_amount)
                .ok_or_else(|| Error::internal("the sum of the price and its tax overflows"))?,
            TaxDisplay::Excluded => price.net_amount,
        };
        Ok(Self {
            amount,
            currency: price.currency_code,
            tax: Tax {
                amount: price.tax_amount,
                included: tax_display == TaxDisplay::Included,
            },
        })
    }
}

/// The name of a distance source; none for a value unknown to this gateway.
pub(super) fn distance_source(source: DistanceSource) -> Option<&'static str> {
    match source {
        DistanceSource::StraightLine => Some("straight_line"),
        DistanceSource::Osrm => Some("osrm"),
        DistanceSource::Unspecified => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(net_amount: i64, tax_amount: i64) -> proto::Price {
        proto::Price {
            net_amount,
            tax_amount,
            currency_code: "EUR".to_owned(),
        }
    }

    #[test]
    fn the_amount_includes_the_tax_unless_it_is_excluded() {
        let amount = |amount, included| Price {
            amount,
            currency: "EUR".to_owned(),
            tax: Tax {
                amount: 83,
                included,
            },
        };

        let included = Price::new(price(416, 83), TaxDisplay::Included).unwrap();
        let excluded = Price::new(price(416, 83), TaxDisplay::Excluded).unwrap();

        assert_eq!(included, amount(499, true));
        assert_eq!(excluded, amount(416, false));
    }

    #[test]
    fn a_sum_that_overflows_is_an_error() {
        assert!(Price::new(price(i64::MAX, 1), TaxDisplay::Included).is_err());
    }
}
