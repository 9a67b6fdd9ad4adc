//! What conditions may speak of: the variables and functions, and their values for a delivery.

use std::{collections::HashMap, sync::Arc};

use cel::{
    Context, Env, ExecutionError, Value,
    objects::{Key, Map},
};
use jiff::{Timestamp, Zoned, civil::Weekday};

use super::load::Load;
use crate::domain::{
    address::{Address, LatLng},
    delivery::DeliveryPlan,
    task::{TaskKind, TaskPlan},
    zone::Zones,
};

/// All variables; [`TASK`] in task rules only.
pub(super) const VARIABLES: &[&str] = &[
    "distance",
    "duration",
    "weight",
    "volume",
    "packages",
    "pickup",
    "dropoff",
    TASK,
    "time_slot",
    "tags",
    "store",
];
pub(super) const TASK: &str = "task";
/// Variables that are a task.
pub(super) const TASKS: &[&str] = &["pickup", "dropoff", TASK];
pub(super) const TASK_FIELDS: &[&str] = &["address", "after", "before", "weekday", "type"];
pub(super) const ADDRESS_FIELDS: &[&str] = &[
    "street_address",
    "postal_code",
    "locality",
    "country",
    "latitude",
    "longitude",
];
pub(super) const FUNCTIONS: &[&str] = &[
    "count",
    "in_zone",
    "hours_until",
    "slot_length",
    "ceil",
    "floor",
    "size",
    "duration",
    "timestamp",
];
/// Called on a text.
pub(super) const TEXT_METHODS: &[&str] = &["contains", "startsWith", "endsWith"];
/// Called on an instant, which has the store's offset, or on a duration.
pub(super) const TIME_METHODS: &[&str] = &["getHours", "getMinutes"];

const SECONDS_AN_HOUR: f64 = 3600.0;

/// What a delivery is priced by, besides the list.
#[derive(Clone, Copy)]
pub(super) struct Circumstances<'a> {
    pub(super) plan: &'a DeliveryPlan,
    pub(super) store: &'a str,
    pub(super) now: &'a Zoned,
}

/// The functions and the variables of a delivery; numbers are doubles, all of them, so that no
/// condition depends on how a number is written.
pub(super) fn context(
    env: &Arc<Env>,
    circumstances: Circumstances<'_>,
    load: &Load,
    zones: &Zones,
) -> Context<'static, 'static> {
    let Circumstances { plan, store, now } = circumstances;
    let mut context = Context::with_env(Arc::clone(env));
    add_functions(&mut context, now.timestamp(), zones);

    let mut add = |name: &str, value: Value| context.add_variable_from_value(name, value);
    add("distance", number(load.meters));
    add("duration", number(load.seconds));
    for (name, value) in [("weight", load.weight), ("volume", load.volume)] {
        if let Some(value) = value {
            add(name, number(value));
        }
    }
    let packages = load
        .packages
        .iter()
        .map(|(kind, count)| (kind.as_str(), number(*count)));
    add("packages", map(packages));
    add("pickup", task(&plan.pickup, TaskKind::Pickup, now));
    add("dropoff", task(&plan.dropoff, TaskKind::Dropoff, now));
    add(
        "time_slot",
        (plan.pickup.time_slot || plan.dropoff.time_slot).into(),
    );
    let tags = plan.pickup.tags.iter().chain(&plan.dropoff.tags);
    add(
        "tags",
        Value::List(Arc::new(tags.map(|tag| tag.as_str().into()).collect())),
    );
    add("store", store.into());
    context
}

/// A task as conditions see it.
pub(super) fn task(plan: &TaskPlan, kind: TaskKind, now: &Zoned) -> Value {
    let zone = now.time_zone();
    let kind = match kind {
        TaskKind::Pickup => "PICKUP",
        TaskKind::Dropoff => "DROPOFF",
    };
    let weekday = weekday(plan.window.before.to_zoned(zone.clone()).weekday());
    map([
        ("address", address(&plan.address)),
        ("after", instant(plan.window.after, now)),
        ("before", instant(plan.window.before, now)),
        ("weekday", weekday.into()),
        ("type", kind.into()),
    ])
}

fn address(address: &Address) -> Value {
    let optional = [
        ("postal_code", &address.postal_code),
        ("locality", &address.locality),
        ("country", &address.country),
    ];
    let given = optional
        .into_iter()
        .filter_map(|(name, text)| Some((name, text.as_deref()?.into())));
    map(given.chain([
        ("street_address", address.street_address.as_str().into()),
        ("latitude", address.lat_lng.latitude().into()),
        ("longitude", address.lat_lng.longitude().into()),
    ]))
}

/// As the time slots' opening hours write it.
fn weekday(weekday: Weekday) -> &'static str {
    match weekday {
        Weekday::Monday => "Mo",
        Weekday::Tuesday => "Tu",
        Weekday::Wednesday => "We",
        Weekday::Thursday => "Th",
        Weekday::Friday => "Fr",
        Weekday::Saturday => "Sa",
        Weekday::Sunday => "Su",
    }
}

/// With the offset of the zone at that instant, so that `getHours()` is the hour on the wall.
fn instant(timestamp: Timestamp, now: &Zoned) -> Value {
    let offset = now.time_zone().to_offset(timestamp).seconds();
    let utc = chrono::DateTime::from_timestamp(timestamp.as_second(), 0);
    match (utc, chrono::FixedOffset::east_opt(offset)) {
        (Some(utc), Some(offset)) => Value::Timestamp(utc.with_timezone(&offset)),
        _ => Value::Null,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "exact up to 2^53, which no distance, weight or count reaches"
)]
fn number(value: i64) -> Value {
    Value::Float(value as f64)
}

fn map<'a>(entries: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let entries = entries
        .into_iter()
        .map(|(name, value)| (Key::from(name.to_owned()), value));
    Value::Map(Map {
        map: Arc::new(entries.collect::<HashMap<_, _>>()),
    })
}

fn add_functions(context: &mut Context<'_, '_>, now: Timestamp, zones: &Zones) {
    let zones = zones.clone();
    let mut added = vec![
        context.add_function("count", |packages: Value, kind: Arc<String>| {
            let count = field(&packages, &kind).cloned();
            Ok::<_, ExecutionError>(count.unwrap_or(Value::Float(0.0)))
        }),
        context.add_function("in_zone", move |address: Value, name: Arc<String>| {
            let point = point(&address)
                .ok_or_else(|| failed("in_zone", "its first argument is no address"))?;
            let inside = zones.contains(&name, point);
            inside
                .map(Value::Bool)
                .ok_or_else(|| failed("in_zone", "there is no such zone"))
        }),
        context.add_function("hours_until", move |task: Value| {
            hours("hours_until", now.as_second(), second(&task, "before"))
        }),
        context.add_function("slot_length", |task: Value| {
            let after = second(&task, "after").unwrap_or_default();
            hours("slot_length", after, second(&task, "before"))
        }),
    ];
    added.push(context.add_function("ceil", |number: f64| number.ceil()));
    added.push(context.add_function("floor", |number: f64| number.floor()));
    debug_assert!(
        added.iter().all(Result::is_ok),
        "a name is taken: {added:?}"
    );
}

fn hours(function: &str, from: i64, to: Option<i64>) -> Result<Value, ExecutionError> {
    let to = to.ok_or_else(|| failed(function, "its argument is no task"))?;
    match number(to - from) {
        Value::Float(seconds) => Ok(Value::Float(seconds / SECONDS_AN_HOUR)),
        other => Ok(other),
    }
}

fn second(task: &Value, name: &str) -> Option<i64> {
    match field(task, name)? {
        Value::Timestamp(instant) => Some(instant.timestamp()),
        _ => None,
    }
}

fn point(address: &Value) -> Option<LatLng> {
    match (field(address, "latitude")?, field(address, "longitude")?) {
        (Value::Float(latitude), Value::Float(longitude)) => {
            LatLng::new(*latitude, *longitude).ok()
        }
        _ => None,
    }
}

fn field<'a>(map: &'a Value, name: &str) -> Option<&'a Value> {
    match map {
        Value::Map(map) => map.map.get(&Key::from(name.to_owned())),
        _ => None,
    }
}

fn failed(function: &str, why: &str) -> ExecutionError {
    ExecutionError::function_error(function, why)
}
