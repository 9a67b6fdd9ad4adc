//! Resources: found by the names and references that clients give, and converted to messages.

pub(crate) mod pages;
mod tasks;

use domain::{
    address::{Address, LatLng},
    api_client::{ApiClient, TaskStatus},
    coverage::ServiceArea,
    delivery::DistanceSource,
    device_clock::DeviceTimes,
    id::StoreId,
    money::Price,
    price_list::RuleOutcome,
    store::Store,
    violation::{Violation, Violations},
    webhook::{DisabledReason, Webhook},
};
use jiff::{Timestamp, civil::Date};
use proto::iri::Collection;
use storage::Storage;
use uuid::Uuid;

pub(crate) use self::tasks::{
    actor, courier_list, delivery, delivery_with_store, listed_task, preview, read_delivery_state,
    read_task_state, task, task_with_place,
};
use crate::error::Error;

/// Finds what a name refers to. Fails if it does not exist.
pub(crate) async fn find_resource<T, E, F>(
    collection: Collection,
    name: &str,
    find: impl FnOnce(Uuid) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<Option<T>, E>>,
    Error: From<E>,
{
    let id = id_in(collection, name)?;
    let found = find(id).await?;
    found.ok_or_else(|| Error::NotFound(name.to_owned()))
}

/// The id in a resource's name. Fails if it is not a name of the collection.
pub(crate) fn id_in(collection: Collection, name: &str) -> Result<Uuid, Error> {
    let id = collection.id(name);
    id.ok_or_else(|| Error::InvalidName(name.to_owned(), collection))
}

/// Finds a store. Fails if it does not exist.
pub(crate) async fn find_store(storage: &Storage, name: &str) -> Result<Store, Error> {
    let find = |id| storage::stores::find(storage.reader(), StoreId(id));
    find_resource(Collection::Stores, name, find).await
}

/// Fails if a delivery of the store has the external reference.
pub(crate) async fn check_external_reference(
    storage: &Storage,
    store_id: StoreId,
    reference: Option<&str>,
) -> Result<(), Error> {
    let Some(reference) = reference else {
        return Ok(());
    };
    let reader = storage.reader();
    let id = storage::deliveries::find_by_external_reference(reader, store_id, reference);
    match id.await? {
        Some(id) => Err(Error::ExternalReferenceTaken {
            reference: reference.to_owned(),
            existing: Collection::Deliveries.name(id),
        }),
        None => Ok(()),
    }
}

/// Limit of the violations taken over from a gateway.
const MAX_VIOLATIONS: usize = 100;

/// The violations found by a gateway.
pub(crate) fn read_violations(found: Vec<proto::Violation>) -> Violations {
    let mut violations = Violations::new();
    for violation in found.into_iter().take(MAX_VIOLATIONS) {
        violations.add(violation.field, violation.reason, violation.description);
    }
    violations
}

pub(crate) fn warnings(found: &[Violation]) -> Vec<proto::Warning> {
    let warnings = found.iter().map(|warning| proto::Warning {
        field: warning.field.clone(),
        description: warning.description.clone(),
        reason: warning.reason.clone().into_owned(),
    });
    warnings.collect()
}

pub(crate) fn timestamp(instant: Timestamp) -> prost_types::Timestamp {
    std::time::SystemTime::from(instant).into()
}

/// The times that a device reports, without nanoseconds that are invalid. What occurred out of range did so at the first
/// or the last instant; a time of sending out of range corrects nothing.
pub(crate) fn device_times(report: Option<proto::Report>) -> DeviceTimes {
    let report = report.unwrap_or_default();
    let read = |timestamp: &prost_types::Timestamp| {
        instant(timestamp).or_else(|| Timestamp::from_second(timestamp.seconds).ok())
    };
    let nearest = |timestamp: &prost_types::Timestamp| {
        let bound = if timestamp.seconds < 0 {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        };
        read(timestamp).unwrap_or(bound)
    };
    DeviceTimes {
        occurred: report.occurred_time.as_ref().map(nearest),
        sent: report.sent_time.as_ref().and_then(read),
    }
}

/// None if the timestamp is out of range.
pub(crate) fn instant(timestamp: &prost_types::Timestamp) -> Option<Timestamp> {
    Timestamp::new(timestamp.seconds, timestamp.nanos).ok()
}

/// A day, the given one if the text is empty.
pub(crate) fn read_day(text: &str, default: Date, violations: &mut Violations) -> Date {
    if text.is_empty() {
        return default;
    }
    // Not also a date with a time, which the parser accepts.
    let parsed = Date::strptime("%Y-%m-%d", text).ok();
    let parsed = parsed.filter(|day| (2000..2200).contains(&day.year()) && text.len() == 10);
    let parsed = parsed.ok_or("must be a day such as 2026-12-01");
    violations
        .check("day", "INVALID_TIME", parsed)
        .unwrap_or(default)
}

pub(crate) fn lat_lng(point: LatLng) -> proto::LatLng {
    proto::LatLng {
        latitude: point.latitude(),
        longitude: point.longitude(),
    }
}

pub(crate) fn address(address: Address) -> proto::Address {
    proto::Address {
        name: Collection::Addresses.name(address.id),
        street_address: address.street_address,
        lat_lng: Some(lat_lng(address.lat_lng)),
        place_name: address.place_name,
        contact_name: address.contact_name,
        telephone: address.telephone,
        description: address.description,
        postal_code: address.postal_code,
        address_locality: address.locality,
        address_country: address.country,
    }
}

pub(crate) fn price(price: Price) -> proto::Price {
    proto::Price {
        net_amount: price.net,
        tax_amount: price.tax,
        currency_code: price.currency.code().to_owned(),
    }
}

pub(crate) fn rule_outcome(outcome: RuleOutcome) -> proto::RuleOutcome {
    proto::RuleOutcome {
        rule: outcome.rule,
        matched: outcome.matched,
        reason: outcome.reason,
        amount: outcome.amount,
    }
}

pub(crate) fn distance_source(source: DistanceSource) -> proto::DistanceSource {
    match source {
        DistanceSource::StraightLine => proto::DistanceSource::StraightLine,
        DistanceSource::Osrm => proto::DistanceSource::Osrm,
    }
}

/// None if the source is not specified.
pub(crate) fn read_distance_source(source: proto::DistanceSource) -> Option<DistanceSource> {
    match source {
        proto::DistanceSource::StraightLine => Some(DistanceSource::StraightLine),
        proto::DistanceSource::Osrm => Some(DistanceSource::Osrm),
        proto::DistanceSource::Unspecified => None,
    }
}

pub(crate) fn store(store: &Store) -> proto::Store {
    proto::Store {
        name: Collection::Stores.name(store.id),
        display_name: store.display_name.clone(),
        default_address: store.default_address.clone().map(address),
        time_zone: store.time_zone_name().to_owned(),
        currency_code: store.currency.code().to_owned(),
        country_code: store.country.as_str().to_owned(),
        service_area: store.service_area.as_ref().map(service_area),
        refuses_unpriced: store.refuses_unpriced,
        has_tracking: store.has_tracking,
        telephone: store.telephone.clone().unwrap_or_default(),
        create_time: Some(timestamp(store.created_at)),
        time_slots: Vec::new(),
        refused_warnings: Vec::new(),
    }
}

fn service_area(area: &ServiceArea) -> proto::ServiceArea {
    let area = match area {
        ServiceArea::Circle(circle) => proto::service_area::Area::Circle(proto::Circle {
            center: circle.center().map(lat_lng),
            radius_meters: circle.radius_meters(),
        }),
        ServiceArea::Zone(name) => proto::service_area::Area::Zone(name.clone()),
    };
    proto::ServiceArea { area: Some(area) }
}

fn task_status(status: TaskStatus) -> proto::api_client::TaskStatus {
    match status {
        TaskStatus::Specified => proto::api_client::TaskStatus::Specified,
        TaskStatus::Full => proto::api_client::TaskStatus::Full,
    }
}

/// None if it is not specified.
pub(crate) fn read_task_status(status: proto::api_client::TaskStatus) -> Option<TaskStatus> {
    let mut statuses = TaskStatus::ALL.into_iter();
    statuses.find(|known| task_status(*known) == status)
}

/// A client, with its secret only if the secret is new.
pub(crate) fn api_client(client: &ApiClient, secret: Option<String>) -> proto::ApiClient {
    proto::ApiClient {
        name: Collection::ApiClients.name(client.id),
        display_name: client.display_name.clone(),
        store: client
            .store_id
            .map(|id| Collection::Stores.name(id))
            .unwrap_or_default(),
        courier: client
            .courier_id
            .map(|id| Collection::Couriers.name(id))
            .unwrap_or_default(),
        task_status: task_status(client.task_status).into(),
        api_key: client.api_key.clone(),
        api_secret: secret.unwrap_or_default(),
        scopes: client
            .scopes
            .iter()
            .map(|scope| scope.as_str().to_owned())
            .collect(),
        default_address: client.default_address.clone().map(address),
        create_time: Some(timestamp(client.created_at)),
        disable_time: client.disabled_at.map(timestamp),
        disabled_webhooks: 0,
    }
}

/// A webhook, without its secret.
pub(crate) fn webhook(webhook: &Webhook, store: &Store, now: Timestamp) -> proto::Webhook {
    use proto::webhook::DisabledReason as Reason;
    let reason = webhook
        .disabled
        .map_or(Reason::Unspecified, |disabled| match disabled.reason {
            DisabledReason::Client => Reason::Client,
            DisabledReason::Operator => Reason::Operator,
            DisabledReason::Gone => Reason::Gone,
            DisabledReason::Failing => Reason::Failing,
        });
    proto::Webhook {
        name: Collection::Webhooks.name(webhook.id),
        event: webhook.event.clone(),
        url: webhook.url.clone(),
        secret: String::new(),
        create_time: Some(timestamp(webhook.created_at)),
        disable_time: webhook.disabled.map(|disabled| timestamp(disabled.at)),
        disabled_reason: reason.into(),
        overlap_end_time: webhook
            .overlap_ends_at
            .filter(|end| now < *end)
            .map(timestamp),
        time_zone: store.time_zone_name().to_owned(),
        api_client: Collection::ApiClients.name(webhook.api_client_id),
        warnings: Vec::new(),
    }
}
