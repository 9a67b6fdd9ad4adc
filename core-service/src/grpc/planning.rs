//! From what a client asks for to a plan that can be priced or carried out, or to everything
//! that is wrong with it: one path for the price and the delivery.

use std::sync::Arc;

use domain::{
    address::Address,
    delivery::{Booking, DeliveryPlan, Route},
    price_list::PriceList,
    retail_price::Promise,
    task::{TaskPlan, TimeWindow},
    violation::Violations,
};
use jiff::{SignedDuration, Timestamp, Zoned};

use super::{
    Core,
    caller::Caller,
    drafts::{self, AddressDraft, Load, Reading, Times},
    in_force::Freshness,
    promises::{Claim, Said},
};

use crate::{error::Error, routing};

/// How many violations of a caller's own finding are repeated.
const MOST_VIOLATIONS: usize = 100;

/// How long a task lasts whose client gives its end only.
const WINDOW: SignedDuration = SignedDuration::from_mins(15);

/// What a client asks for, as a gateway read it.
pub(super) struct Asked {
    pub(super) draft: Option<proto::DeliveryDraft>,
    /// What the gateway found wrong.
    pub(super) violations: Vec<proto::Violation>,
    /// Of the definitions by which it is judged and priced.
    pub(super) freshness: Freshness,
}

/// A plan and what it is priced with.
pub(super) struct Planned {
    pub(super) plan: DeliveryPlan,
    pub(super) price_list: Option<Arc<PriceList>>,
    /// The price it was promised at.
    pub(super) promise: Option<Promise>,
    /// When it was planned, in the store's zone.
    pub(super) now: Zoned,
    /// The place its dropoff takes, in a slot of limited capacity, and that capacity.
    pub(super) booking: Option<(Booking, u32)>,
    pub(super) external_reference: Option<String>,
}

/// A task's checked parts, before they are put together.
struct Parts {
    address: Option<AddressDraft>,
    times: Times,
    load: Load,
}

impl Core {
    /// Plans a delivery for the caller's store, as it was promised if there is a claim.
    pub(super) async fn plan(
        &self,
        caller: &Caller,
        asked: Asked,
        claim: Claim,
    ) -> Result<Planned, Error> {
        let freshness = asked.freshness;
        let store = caller.store()?;
        let now = self.now_in(store);
        // "Tomorrow" is still the day for which the price was promised.
        let read_at = claim.promise().map_or_else(
            || now.clone(),
            |promise| promise.calculated_at.to_zoned(now.time_zone().clone()),
        );
        let reading = Reading {
            now: &read_at,
            date_order: Self::date_order(store),
            country: self.config.platform.country.as_str(),
        };
        let mut violations = violations(asked.violations);
        let draft = asked.draft.unwrap_or_default();

        let external_reference =
            drafts::external_reference(draft.external_reference, &mut violations);
        let [pickup, dropoff] = tasks(draft.pickup, draft.dropoff, &reading, &mut violations);
        let price_list = self.price_list(store.id, freshness).await?;
        // What was promised does not depend on what the list says by now.
        if let (Some(price_list), None) = (&price_list, claim.promise()) {
            check_packages("pickup", &pickup.load, price_list, &mut violations);
            check_packages("dropoff", &dropoff.load, price_list, &mut violations);
        }
        let offer = self.offer(store, freshness).await?;
        if let Some(offer) = &offer {
            offer.check("pickup", &pickup.times, &now, &mut violations);
            offer.check("dropoff", &dropoff.times, &now, &mut violations);
        }
        let booking = offer.and_then(|offer| offer.booking(dropoff.times.slot));

        let reach = self.reach(store, freshness).await?;
        let from = self
            .pickup_address(caller, &reach, pickup.address, &mut violations)
            .await?;
        let to = self
            .dropoff_address(&reach, dropoff.address, &mut violations)
            .await?;
        let route = match (&from, &to) {
            (Some(from), Some(to)) => match claim.promise() {
                Some(promise) if promise.basis.is_between(from, to) => Some(promise.route),
                _ => self.route(from, to, &mut violations).await?,
            },
            _ => None,
        };
        let windows = windows(&pickup.times, &dropoff.times, route, &mut violations);

        let (Some(from), Some(to), Some(route), Some((first, second))) = (from, to, route, windows)
        else {
            claim.check(&mut violations);
            return Err(Error::Invalid(violations));
        };
        if !violations.is_empty() {
            claim.check(&mut violations);
            return Err(Error::Invalid(violations));
        }
        let plan = DeliveryPlan {
            pickup: task_plan(from, first, &pickup.times, pickup.load),
            dropoff: task_plan(to, second, &dropoff.times, dropoff.load),
            route,
        };
        let said = Said {
            pickup: pickup.times.said,
            pickup_slot: pickup.times.slot.is_some(),
            dropoff_slot: dropoff.times.slot.is_some(),
        };
        let promise = claim.keep(&plan, &said)?;
        Ok(Planned {
            plan,
            price_list,
            promise,
            now,
            booking,
            external_reference,
        })
    }

    async fn route(
        &self,
        from: &Address,
        to: &Address,
        violations: &mut Violations,
    ) -> Result<Option<Route>, Error> {
        match self.router.route(from.lat_lng, to.lat_lng).await {
            Ok(route) => Ok(Some(route)),
            Err(error @ routing::Error::NoRoute) => {
                violations.add("dropoff.address", "NO_ROUTE", error.to_string());
                Ok(None)
            }
            Err(error @ routing::Error::Unavailable(_)) => Err(error.into()),
        }
    }
}

/// The violations a gateway found.
pub(super) fn violations(found_before: Vec<proto::Violation>) -> Violations {
    let mut violations = Violations::new();
    for violation in found_before.into_iter().take(MOST_VIOLATIONS) {
        violations.add(violation.field, violation.reason, violation.description);
    }
    violations
}

/// The pickup's parts and the dropoff's, which must be there and say when.
fn tasks(
    pickup: Option<proto::TaskDraft>,
    dropoff: Option<proto::TaskDraft>,
    reading: &Reading<'_>,
    violations: &mut Violations,
) -> [Parts; 2] {
    let pickup = parts("pickup", pickup.unwrap_or_default(), reading, violations);
    if dropoff.is_none() {
        violations.add("dropoff", "REQUIRED", "is required");
    }
    let dropoff = parts("dropoff", dropoff.unwrap_or_default(), reading, violations);
    let misread = ["dropoff.before", "dropoff.time_slot"]
        .iter()
        .any(|field| violations.is_at_or_below(field));
    if !dropoff.times.said && !misread {
        violations.add(
            "dropoff.before",
            "REQUIRED",
            "is required, or timeSlot in its place",
        );
    }
    [pickup, dropoff]
}

fn parts(
    field: &str,
    mut draft: proto::TaskDraft,
    reading: &Reading<'_>,
    violations: &mut Violations,
) -> Parts {
    Parts {
        address: drafts::address(
            &format!("{field}.address"),
            draft.address.take(),
            reading.country,
            violations,
        ),
        times: drafts::times(field, &draft, reading, violations),
        load: drafts::load(field, draft, violations),
    }
}

fn check_packages(task: &str, load: &Load, price_list: &PriceList, violations: &mut Violations) {
    for (index, package) in load.packages.iter().enumerate() {
        if !price_list.knows_package(&package.kind) {
            let known: Vec<_> = price_list.package_kinds().collect();
            let known = match known.as_slice() {
                [] => "the store has none".to_owned(),
                known => format!("the store has {}", known.join(", ")),
            };
            violations.add(
                format!("{task}.packages[{index}].type"),
                "UNKNOWN_PACKAGE",
                format!("there is no package type {:?}: {known}", package.kind),
            );
        }
    }
}

/// When the tasks happen, in order: what was said, and what follows from it.
fn windows(
    pickup: &Times,
    dropoff: &Times,
    route: Option<Route>,
    violations: &mut Violations,
) -> Option<(TimeWindow, TimeWindow)> {
    let second = window("dropoff", dropoff, dropoff.before, violations);
    let arrival = second.map(|window| window.before);
    let departure = arrival.zip(route).and_then(|(arrival, route)| {
        earlier(arrival, SignedDuration::from_secs(route.seconds.into()))
    });
    let end = if pickup.said {
        pickup.before
    } else {
        departure
    };
    let first = window("pickup", pickup, end, violations);
    if pickup.said
        && let (Some(first), Some(second)) = (first, second)
        && first.before > second.before
    {
        let field = match pickup.slot {
            Some(_) => "pickup.time_slot",
            None => "pickup.before",
        };
        violations.add(
            field,
            "OUT_OF_ORDER",
            "must not be later than the dropoff's",
        );
    }
    first.zip(second)
}

/// One task's window: the slot, or from `after`, or a quarter of an hour before its end.
fn window(
    task: &str,
    times: &Times,
    end: Option<Timestamp>,
    violations: &mut Violations,
) -> Option<TimeWindow> {
    let (start, end) = match times.slot {
        Some(slot) => (slot.after, slot.before),
        None => (earlier(end?, WINDOW)?, end?),
    };
    let after = times.after.unwrap_or(start);
    if after >= end {
        violations.add(
            format!("{task}.after"),
            "OUT_OF_ORDER",
            "must be earlier than the task's end",
        );
        return None;
    }
    Some(TimeWindow { after, before: end })
}

fn earlier(instant: Timestamp, by: SignedDuration) -> Option<Timestamp> {
    instant.checked_sub(by).ok()
}

fn task_plan(address: Address, window: TimeWindow, times: &Times, load: Load) -> TaskPlan {
    TaskPlan {
        address,
        window,
        time_slot: times.slot.is_some(),
        comments: load.comments,
        weight: load.weight,
        packages: load.packages,
        tags: load.tags,
        metadata: load.metadata,
    }
}
