//! Resources: found by the names and references that clients give, and converted to messages.

pub(crate) mod pages;

use domain::{
    address::{Address, LatLng},
    brand::Colour,
    courier::{ListKey, Place},
    courier_lists,
    coverage::ServiceArea,
    delivery::{Delivery, DistanceSource},
    device_clock::DeviceTimes,
    id::{StoreId, TaskId},
    lifecycle::DeliveryState,
    money::Price,
    price_list::RuleOutcome,
    store::Store,
    task::{Actor, Package, StateName, Task, TaskKind, TaskState},
    tracking::TrackingToken,
    violation::Violations,
};
use jiff::{Timestamp, civil::Date};
use proto::iri::Collection;
use storage::{Storage, courier_lists::Change, task_lists::ListedTask};
use uuid::Uuid;

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
        colour: store.brand.colour.map_or(0, Colour::number),
        logo_version: store.brand.logo_version.clone().unwrap_or_default(),
        create_time: Some(timestamp(store.created_at)),
        disable_time: store.disabled_at.map(timestamp),
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

/// The URL is that of the REST API, below which the tracking page is.
pub(crate) fn delivery(delivery: Delivery, store: &Store, public_url: &str) -> proto::Delivery {
    let state = delivery_state(delivery.state());
    let cancelled_at = delivery.cancelled_at();
    let token = TrackingToken::of(&delivery).filter(|_| store.has_tracking);
    proto::Delivery {
        tracking_url: token.map_or_else(String::new, |token| format!("{public_url}/t/{token}")),
        state: state.into(),
        name: Collection::Deliveries.name(delivery.id),
        pickup: Some(task(delivery.pickup, store)),
        dropoff: Some(task(delivery.dropoff, store)),
        distance_meters: delivery.route.distance_meters,
        duration_seconds: delivery.route.duration_seconds,
        distance_source: distance_source(delivery.route.source).into(),
        price: delivery.price.map(price),
        retail_price: delivery.retail_price.unwrap_or_default(),
        time_zone: store.time_zone_name().to_owned(),
        create_time: Some(timestamp(delivery.created_at)),
        cancel_time: cancelled_at.map(timestamp),
        external_reference: delivery.external_reference,
        ..proto::Delivery::default()
    }
}

fn delivery_state(state: DeliveryState) -> proto::delivery::State {
    use proto::delivery::State;
    match state {
        DeliveryState::Created => State::Created,
        DeliveryState::Assigned => State::Assigned,
        DeliveryState::Started => State::Started,
        DeliveryState::Picked => State::Picked,
        DeliveryState::InTransit => State::InTransit,
        DeliveryState::Dropped => State::Dropped,
        DeliveryState::Failed => State::Failed,
        DeliveryState::Completed => State::Completed,
        DeliveryState::Cancelled => State::Cancelled,
    }
}

/// None if the state is not specified.
pub(crate) fn read_delivery_state(state: proto::delivery::State) -> Option<DeliveryState> {
    let mut states = DeliveryState::ALL.into_iter();
    states.find(|known| delivery_state(*known) == state)
}

/// A delivery with its store and its couriers, which shops do not see.
pub(crate) fn delivery_with_store(
    read: Delivery,
    store: &Store,
    public_url: &str,
) -> proto::Delivery {
    let places = [read.pickup.place, read.dropoff.place];
    let mut message = proto::Delivery {
        store: Collection::Stores.name(store.id),
        store_display_name: store.display_name.clone(),
        ..delivery(read, store, public_url)
    };
    let tasks = [&mut message.pickup, &mut message.dropoff];
    for (task, place) in tasks.into_iter().flatten().zip(places) {
        set_place(task, place);
    }
    message
}

/// A delivery before its creation: without names, creation and update times.
pub(crate) fn preview(mut preview: proto::Delivery) -> proto::Delivery {
    preview.name.clear();
    preview.create_time = None;
    for task in [&mut preview.pickup, &mut preview.dropoff]
        .into_iter()
        .flatten()
    {
        task.name.clear();
        task.delivery.clear();
        task.create_time = None;
        task.update_time = None;
        task.state_time = None;
        if let Some(address) = &mut task.address {
            address.name.clear();
        }
    }
    preview
}

/// A task with what a list of tasks shows of its delivery and its store.
pub(crate) fn listed_task(listed: ListedTask) -> proto::Task {
    let ListedTask {
        task: listed,
        other,
        store,
        external_reference,
    } = listed;
    proto::Task {
        other_task: Collection::Tasks.name(other.id),
        other_state: task_state(other.state.name()).into(),
        blocked: listed.is_blocked_by(&other),
        store: Collection::Stores.name(store.id),
        store_display_name: store.display_name.clone(),
        external_reference: external_reference.unwrap_or_default(),
        ..task_with_place(listed, &store)
    }
}

fn task_state(state: StateName) -> proto::task::State {
    match state {
        StateName::Todo => proto::task::State::Todo,
        StateName::Doing => proto::task::State::Doing,
        StateName::Done => proto::task::State::Done,
        StateName::Failed => proto::task::State::Failed,
        StateName::Cancelled => proto::task::State::Cancelled,
    }
}

/// None if the state is not specified.
pub(crate) fn read_task_state(state: proto::task::State) -> Option<StateName> {
    let mut states = StateName::ALL.into_iter();
    states.find(|name| task_state(*name) == state)
}

/// A task with its courier, which shops do not see.
pub(crate) fn task_with_place(placed: Task, store: &Store) -> proto::Task {
    let place = placed.place;
    let mut message = task(placed, store);
    set_place(&mut message, place);
    message
}

fn set_place(message: &mut proto::Task, place: Option<Place>) {
    if let Some(Place { list, position }) = place {
        message.courier = Collection::Couriers.name(list.courier_id);
        message.list_day = list.day.to_string();
        message.list_position = position;
    }
}

pub(crate) fn task(task: Task, store: &Store) -> proto::Task {
    let (complete_time, cancel_time) = (task.completed_at(), task.cancelled_at());
    let status = if task.is_done() {
        proto::task::Status::Done
    } else {
        proto::task::Status::Todo
    };
    let state = task_state(task.state.name());
    let failure_reason = match &task.state {
        TaskState::Failed(reason) => reason.as_str().to_owned(),
        _ => String::new(),
    };
    let details = task.details;
    proto::Task {
        name: Collection::Tasks.name(task.id),
        delivery: Collection::Deliveries.name(task.delivery_id),
        kind: match task.kind {
            TaskKind::Pickup => proto::task::Kind::Pickup,
            TaskKind::Dropoff => proto::task::Kind::Dropoff,
        }
        .into(),
        status: status.into(),
        address: Some(address(task.address)),
        after: Some(timestamp(task.window.after)),
        before: Some(timestamp(task.window.before)),
        comments: details.comments,
        weight: details.weight,
        packages: details.packages.into_iter().map(package).collect(),
        tags: details.tags,
        metadata: details.metadata.into_iter().collect(),
        time_zone: store.time_zone_name().to_owned(),
        create_time: Some(timestamp(task.created_at)),
        update_time: Some(timestamp(task.updated_at)),
        complete_time: complete_time.map(timestamp),
        cancel_time: cancel_time.map(timestamp),
        state: state.into(),
        state_time: Some(timestamp(task.state_since)),
        failure_reason,
        has_incidents: task.open_incidents > 0,
        images: task
            .images
            .iter()
            .map(|id| Collection::Images.name(id))
            .collect(),
        ..proto::Task::default()
    }
}

pub(crate) fn actor(actor: Actor) -> proto::task_event::Actor {
    match actor {
        Actor::Shop => proto::task_event::Actor::Shop,
        Actor::Courier => proto::task_event::Actor::Courier,
        Actor::Dispatch => proto::task_event::Actor::Dispatch,
    }
}

fn package(package: Package) -> proto::Package {
    proto::Package {
        r#type: package.kind,
        quantity: package.quantity,
    }
}

/// A list of a courier, with its last change.
pub(crate) fn courier_list(
    list: ListKey,
    order: &[TaskId],
    change: Option<&Change>,
) -> proto::CourierList {
    let changed_by = change.map(|change| Collection::ApiClients.name(change.by));
    let tasks = order.iter().map(|task| Collection::Tasks.name(task));
    proto::CourierList {
        courier: Collection::Couriers.name(list.courier_id),
        etag: courier_lists::etag(order),
        tasks: tasks.collect(),
        change_time: change.map(|change| timestamp(change.at)),
        changed_by: changed_by.unwrap_or_default(),
    }
}
