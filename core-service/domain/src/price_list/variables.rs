//! The names that conditions may use, and the values of variables for a delivery.

use std::{collections::HashMap, sync::OnceLock};

use cel::{
    Context,
    common::{
        types::{CelBool, CelDouble, CelList, CelMap, CelMapKey, CelNull, CelString, CelTimestamp},
        value::{CowVal, Val},
    },
    context::VariableResolver,
};
use jiff::{Timestamp, Zoned};

use super::Totals;
use crate::{
    address::Address,
    delivery::Delivery,
    task::{Task, TaskKind},
};

// Lists of names have spaces between them.
/// All variables. [`TASK`] is available only in task rules.
pub(super) const VARIABLES: &str =
    "distance duration weight volume packages pickup dropoff task time_slot tags store";
pub(super) const TASK: &str = "task";
/// The current time, for functions. Conditions may not use it.
pub(super) const NOW: &str = "now";
/// The variables that are tasks.
pub(super) const TASKS: &str = "pickup dropoff task";
pub(super) const TASK_FIELDS: &str = "address after before weekday type";
pub(super) const ADDRESS_FIELDS: &str =
    "street_address postal_code locality country latitude longitude";
pub(super) const FUNCTIONS: &str =
    "count in_zone hours_until slot_length ceil floor size duration timestamp";
/// Methods of a string.
pub(super) const TEXT_METHODS: &str = "contains startsWith endsWith";
/// Methods of a duration, and of a timestamp in the store's time zone.
pub(super) const TIME_METHODS: &str = "getHours getMinutes";

/// Whether a list of names has this one.
pub(super) fn has(names: &str, name: &str) -> bool {
    names.split(' ').any(|other| other == name)
}

/// The variables of a delivery. All numbers are doubles, so that `3000` and `3000.0` compare equal.
/// Tasks, packages and tags are created on first use, as most conditions use few of them.
pub(super) struct Variables<'a> {
    delivery: &'a Delivery,
    /// In the store's time zone.
    zoned_now: &'a Zoned,
    totals: &'a Totals,
    now: Value<'a>,
    distance: CelDouble,
    duration: CelDouble,
    weight: Option<CelDouble>,
    volume: Option<CelDouble>,
    time_slot: CelBool,
    store: CelString<'a>,
    pickup: OnceLock<CelMap<'a>>,
    dropoff: OnceLock<CelMap<'a>>,
    packages: OnceLock<CelMap<'a>>,
    tags: OnceLock<CelList<'a>>,
}

/// The variables of a rule: those of a delivery and, in task rules, [`TASK`].
pub(super) struct Scope<'a, 'v> {
    pub(super) variables: &'v Variables<'a>,
    pub(super) task: Option<TaskKind>,
}

type Value<'a> = Box<dyn Val + 'a>;

impl<'a> Variables<'a> {
    /// `store` is the store's display name; `now` is in its time zone.
    pub(super) fn new(
        delivery: &'a Delivery,
        totals: &'a Totals,
        store: &'a str,
        now: &'a Zoned,
    ) -> Self {
        Self {
            delivery,
            zoned_now: now,
            totals,
            now: instant(now.timestamp(), now),
            distance: number(totals.meters),
            duration: number(totals.seconds),
            weight: totals.weight.map(number),
            volume: totals.volume.map(number),
            time_slot: (delivery.pickup.has_time_slot || delivery.dropoff.has_time_slot).into(),
            store: store.into(),
            pickup: OnceLock::new(),
            dropoff: OnceLock::new(),
            packages: OnceLock::new(),
            tags: OnceLock::new(),
        }
    }

    fn task(&self, kind: TaskKind) -> &CelMap<'a> {
        let (variable, of) = match kind {
            TaskKind::Pickup => (&self.pickup, &self.delivery.pickup),
            TaskKind::Dropoff => (&self.dropoff, &self.delivery.dropoff),
        };
        variable.get_or_init(|| task(of, self.zoned_now))
    }

    fn packages(&self) -> &CelMap<'a> {
        let packages = self.totals.packages.iter();
        self.packages.get_or_init(|| {
            map(packages.map(|(kind, count)| (kind.as_str(), boxed(number(*count)))))
        })
    }

    fn tags(&self) -> &CelList<'a> {
        let tasks = [&self.delivery.pickup, &self.delivery.dropoff];
        let tags = tasks.into_iter().flat_map(|task| &task.details.tags);
        self.tags.get_or_init(|| {
            let tags: Vec<_> = tags
                .map(|tag| boxed(CelString::from(tag.as_str())))
                .collect();
            tags.into()
        })
    }
}

impl Scope<'_, '_> {
    /// The functions with these variables.
    pub(super) fn context<'b>(&'b self, functions: &'b Context<'b, 'b>) -> Context<'b, 'b> {
        let mut context = functions.new_inner_scope();
        context.set_variable_resolver(self);
        context
    }
}

impl VariableResolver for Scope<'_, '_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        let variables = self.variables;
        let value: &dyn Val = match variable {
            "distance" => &variables.distance,
            "duration" => &variables.duration,
            "weight" => variables.weight.as_ref()?,
            "volume" => variables.volume.as_ref()?,
            "packages" => variables.packages(),
            "pickup" => variables.task(TaskKind::Pickup),
            "dropoff" => variables.task(TaskKind::Dropoff),
            TASK => variables.task(self.task?),
            "time_slot" => &variables.time_slot,
            "tags" => variables.tags(),
            "store" => &variables.store,
            NOW => &*variables.now,
            _ => return None,
        };
        Some(CowVal::Borrowed(value))
    }
}

fn task<'a>(task: &'a Task, now: &Zoned) -> CelMap<'a> {
    let kind = match task.kind {
        TaskKind::Pickup => "PICKUP",
        TaskKind::Dropoff => "DROPOFF",
    };
    let day = now.time_zone().to_datetime(task.window.before).weekday();
    // Monday first, as abbreviated in opening hours.
    let weekday = ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"][day as usize - 1];
    map([
        ("address", boxed(address(&task.address))),
        ("after", instant(task.window.after, now)),
        ("before", instant(task.window.before, now)),
        ("weekday", boxed(CelString::from(weekday))),
        ("type", boxed(CelString::from(kind))),
    ])
}

fn address(address: &Address) -> CelMap<'_> {
    let optional = [
        ("postal_code", &address.postal_code),
        ("locality", &address.locality),
        ("country", &address.country),
    ];
    let given = optional
        .into_iter()
        .filter_map(|(name, text)| Some((name, boxed(CelString::from(text.as_deref()?)))));
    let street = CelString::from(address.street_address.as_str());
    map(given.chain([
        ("street_address", boxed(street)),
        (
            "latitude",
            boxed(CelDouble::from(address.lat_lng.latitude())),
        ),
        (
            "longitude",
            boxed(CelDouble::from(address.lat_lng.longitude())),
        ),
    ]))
}

/// A timestamp with the UTC offset of the time zone of `now`, so that `getHours()` is the local
/// hour.
fn instant<'a>(timestamp: Timestamp, now: &Zoned) -> Value<'a> {
    let offset = now.time_zone().to_offset(timestamp).seconds();
    let utc = chrono::DateTime::from_timestamp(timestamp.as_second(), 0);
    match (utc, chrono::FixedOffset::east_opt(offset)) {
        (Some(utc), Some(offset)) => boxed(CelTimestamp::from(utc.with_timezone(&offset))),
        _ => boxed(CelNull),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "exact up to 2^53, which no distance, weight or count reaches"
)]
fn number(value: i64) -> CelDouble {
    CelDouble::from(value as f64)
}

fn map<'a>(entries: impl IntoIterator<Item = (&'a str, Value<'a>)>) -> CelMap<'a> {
    let entries = entries.into_iter();
    let by_key = entries.map(|(name, value)| (CelMapKey::from(name), value));
    by_key.collect::<HashMap<_, _>>().into()
}

fn boxed<'a>(value: impl Val + 'a) -> Value<'a> {
    Box::new(value)
}
