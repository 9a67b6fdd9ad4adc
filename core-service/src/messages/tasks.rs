//! Deliveries, tasks and lists of them, converted to messages.

use domain::{
    courier::{ListKey, Place},
    courier_lists,
    delivery::Delivery,
    id::TaskId,
    lifecycle::DeliveryState,
    store::Store,
    task::{Actor, Package, StateName, Task, TaskKind, TaskState},
    tracking::TrackingToken,
};
use proto::iri::Collection;
use storage::{courier_lists::Change, task_lists::ListedTask};

use super::{address, distance_source, price, timestamp};

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
