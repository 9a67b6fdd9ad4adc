//! Validates a requested delivery and plans it, in the same way for prices and for deliveries.

use std::sync::Arc;

use domain::{
    address::Address,
    before::DateOrder,
    delivery::{Booking, DeliveryPlan, Route},
    delivery_window::{self, TaskTimes},
    price_list::PriceList,
    quote::Quote,
    store::Country,
    task::{TaskPlan, TimeWindow},
    telephone,
    violation::{Violation, Violations},
};
use jiff::Zoned;
use process::clock::Clock;
use storage::delivery_insertion::DefinitionVersions;

use super::{
    address_geocoder::{AddressGeocoder, StoreArea},
    definitions::Definitions,
    freshness::Freshness,
    quotes::{self, GivenTimes, QuoteUse, Quotes},
    slot_availability::SlotAvailability,
    validation::{self, AddressDraft, ParseContext, TaskDetails},
};
use crate::{
    auth::caller::Caller,
    error::Error,
    messages,
    routing::{self, Router},
};

/// A requested delivery, and the violations that the gateway has found in it.
pub(crate) type Draft = (Option<proto::DeliveryDraft>, Vec<proto::Violation>);

/// A valid plan, and the inputs of its price.
pub(crate) struct PlannedDelivery {
    pub(crate) plan: DeliveryPlan,
    pub(crate) price_list: Option<Arc<PriceList>>,
    /// The accepted quote, if the request names one.
    pub(crate) quote: Option<Quote>,
    /// The time of planning, in the store's time zone.
    pub(crate) now: Zoned,
    /// Booking of the dropoff in a slot with limited capacity, and that capacity.
    pub(crate) booking: Option<(Booking, u32)>,
    pub(crate) external_reference: Option<String>,
    /// What is valid in the request and may be a mistake.
    pub(crate) warnings: Vec<Violation>,
    /// The definitions that the plan depends on.
    pub(crate) versions: DefinitionVersions,
}

/// The validated fields of one task.
struct TaskInput {
    address: Option<AddressDraft>,
    times: TaskTimes,
    details: TaskDetails,
}

/// Plans deliveries.
pub(crate) struct Planner {
    pub(crate) quotes: Arc<Quotes>,
    pub(crate) definitions: Arc<Definitions>,
    pub(crate) geocoder: Arc<AddressGeocoder>,
    pub(crate) router: Router,
    pub(crate) clock: Clock,
    /// The platform's country, for [`telephone::national_country`].
    pub(crate) country: Country,
}

impl Planner {
    /// Plans a delivery for the caller's store, under the terms of the quote if one is charged.
    /// Reports the violations found by the gateway too. `freshness` is that of the time slot, the
    /// price list and the zones.
    pub(crate) async fn plan(
        &self,
        caller: &Caller,
        (draft, violations): Draft,
        quote_use: QuoteUse,
        freshness: Freshness,
    ) -> Result<PlannedDelivery, Error> {
        let store = caller.store()?;
        let draft = draft.unwrap_or_default();
        let name = draft.retail_price.as_deref();
        let named = self.quotes.look_up(store.id, name, quote_use);
        let quote = named.as_ref().ok().and_then(Option::as_ref);
        let now = self.clock.now().to_zoned(store.time_zone.clone());
        // "Tomorrow" is relative to the time of the quote.
        let relative_to = quote.map_or_else(
            || now.clone(),
            |quote| quote.calculated_at.to_zoned(now.time_zone().clone()),
        );
        let context = ParseContext {
            now: &relative_to,
            date_order: DateOrder::of_country(store.country.as_str()),
            country: telephone::national_country(Some(&store.country), &self.country).as_str(),
        };
        let mut violations = messages::read_violations(violations);

        let external_reference =
            validation::external_reference(draft.external_reference, &mut violations);
        let [pickup, dropoff] = task_inputs(draft.pickup, draft.dropoff, &context, &mut violations);
        let definitions = &self.definitions;
        let mut versions = DefinitionVersions::default();
        let price_list = definitions.price_list(store.id, freshness, &mut versions);
        let price_list = price_list.await?;
        // A quote stays binding even if the price list has changed since.
        if let (Some(price_list), None) = (&price_list, quote) {
            check_packages("pickup", &pickup.details, price_list, &mut violations);
            check_packages("dropoff", &dropoff.details, price_list, &mut violations);
        }
        let availability = SlotAvailability::read(definitions, store, freshness, &now).await?;
        if let Some(availability) = &availability {
            versions.time_slot = Some(Arc::clone(&availability.stored));
            availability.check_window("pickup", &pickup.times, &now, &mut violations);
            availability.check_dropoff(&dropoff.times, &now, &mut violations);
        }
        let booking =
            availability.and_then(|availability| availability.booking(dropoff.times.slot));

        let coverage = definitions.coverage(store, freshness, &mut versions);
        let coverage = coverage.await?;
        let area = StoreArea {
            id: Some(store.id),
            coverage: &coverage,
        };
        let from = self
            .geocoder
            .pickup_address(caller, area, pickup.address, &mut violations)
            .await?;
        let to = self
            .geocoder
            .dropoff_address(area, dropoff.address, &mut violations)
            .await?;
        let route = match (&from, &to) {
            (Some(from), Some(to)) => match quote {
                Some(quote) if quote.fingerprint.matches_addresses(from, to) => Some(quote.route),
                _ => self.route(from, to, &mut violations).await?,
            },
            _ => None,
        };
        let windows = delivery_window::task_windows(
            &pickup.times,
            &dropoff.times,
            route,
            now.time_zone(),
            &mut violations,
        );

        let (Some(from), Some(to), Some(route), Some((pickup_window, dropoff_window)), true) =
            (from, to, route, windows, violations.is_empty())
        else {
            if let Err(unusable) = named {
                unusable.add_violation(&mut violations);
            }
            return Err(Error::Invalid(violations));
        };
        let plan = DeliveryPlan {
            pickup: task_plan(from, pickup_window, &pickup.times, pickup.details),
            dropoff: task_plan(to, dropoff_window, &dropoff.times, dropoff.details),
            route,
        };
        let given = GivenTimes {
            pickup: pickup.times.is_end_requested,
            pickup_slot: pickup.times.slot.is_some(),
            dropoff_slot: dropoff.times.slot.is_some(),
        };
        let quote = named?;
        if let Some(quote) = &quote {
            quotes::check_plan(quote, &plan, &given)?;
        }
        for (task, times) in [("pickup", &pickup.times), ("dropoff", &dropoff.times)] {
            delivery_window::warn_of_past_times(task, times, &now, &mut violations);
        }
        Ok(PlannedDelivery {
            plan,
            price_list,
            quote,
            now,
            booking,
            external_reference,
            warnings: violations.into_warnings(),
            versions,
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

/// The fields of the pickup and of the dropoff, which must have a time.
fn task_inputs(
    pickup: Option<proto::TaskDraft>,
    dropoff: Option<proto::TaskDraft>,
    context: &ParseContext<'_>,
    violations: &mut Violations,
) -> [TaskInput; 2] {
    let pickup = task_input("pickup", pickup.unwrap_or_default(), context, violations);
    if dropoff.is_none() {
        violations.add("dropoff", "REQUIRED", "is required");
    }
    let dropoff = task_input("dropoff", dropoff.unwrap_or_default(), context, violations);
    let has_invalid_time = ["dropoff.before", "dropoff.time_slot"]
        .iter()
        .any(|field| violations.has_violation_in(field));
    if !dropoff.times.is_end_requested && !has_invalid_time {
        violations.add(
            "dropoff.before",
            "REQUIRED",
            "is required, unless timeSlot is given",
        );
    }
    [pickup, dropoff]
}

fn task_input(
    field: &str,
    mut draft: proto::TaskDraft,
    context: &ParseContext<'_>,
    violations: &mut Violations,
) -> TaskInput {
    let input = TaskInput {
        address: validation::address(
            &format!("{field}.address"),
            draft.address.take(),
            context.country,
            violations,
        ),
        times: validation::times(field, &draft, context, violations),
        details: validation::details(field, draft, violations),
    };
    let bytes =
        input.details.text_bytes() + input.address.as_ref().map_or(0, AddressDraft::text_bytes);
    validation::check_total(field, bytes, violations);
    input
}

fn check_packages(
    task: &str,
    details: &TaskDetails,
    price_list: &PriceList,
    violations: &mut Violations,
) {
    for (index, package) in details.packages.iter().enumerate() {
        if !price_list.allows_package(&package.kind) {
            let known: Vec<_> = price_list.package_types().collect();
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

fn task_plan(
    address: Address,
    window: TimeWindow,
    times: &TaskTimes,
    details: TaskDetails,
) -> TaskPlan {
    TaskPlan {
        address,
        window,
        has_time_slot: times.slot.is_some(),
        comments: details.comments,
        weight: details.weight,
        packages: details.packages,
        tags: details.tags,
        metadata: details.metadata,
    }
}
