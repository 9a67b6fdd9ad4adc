//! Validates a requested delivery and plans it, in the same way for prices and for deliveries.

use std::sync::Arc;

use domain::{
    address::Address,
    before::DateOrder,
    delivery::{self, Delivery, Route, TaskTimes},
    id::{DeliveryId, TaskId},
    price_list::{Calculation, PriceList},
    quote::Quote,
    store::{Country, Store},
    task::{Actor, Task, TaskDetails, TaskKind, TaskState, TimeWindow},
    telephone,
    violation::{Violation, Violations},
};
use geocoding::{Chain, Precision};
use jiff::{Timestamp, Zoned};
use process::clock::Clock;
use storage::delivery_insertion::DefinitionVersions;
use uuid::Uuid;

use super::{
    address_geocoder::{AddressDraft, StoreArea},
    definitions::{CachePolicy, Definitions},
    quotes::{self, QuoteUse},
    slot_availability::SlotAvailability,
    validation::{self, ParseContext},
};
use crate::{
    auth::caller::Caller,
    error::Error,
    messages,
    routing::{self, Router},
    secrets::secret_box::SecretBox,
};

/// The reason of the warning of a delivery without a price, and of the error in a store that refuses it.
pub(crate) const PRICE_NOT_CALCULATED: &str = "PRICE_NOT_CALCULATED";

/// How many rules of a price list the warning explains. The error explains all.
const MAX_EXPLAINED_RULES: usize = 5;

/// A dropoff farther away is probably a mistake: a courier does not return on the same day.
const FAR_KILOMETERS: f64 = 200.0;

/// A valid delivery, and what its price and its creation depend on.
pub(crate) struct PlannedDelivery {
    pub(crate) delivery: Delivery,
    /// Of the price list; without outcomes if a quote sets the price.
    pub(crate) calculation: Calculation,
    pub(crate) price_list: Option<Arc<PriceList>>,
    /// The id of the quote that is charged.
    pub(crate) quote_id: Option<Uuid>,
    /// The capacity of the dropoff's slot, if it is limited.
    pub(crate) capacity: Option<u32>,
    /// What is valid in the request and may be a mistake.
    pub(crate) warnings: Vec<Violation>,
    /// The definitions that the plan depends on.
    pub(crate) versions: DefinitionVersions,
}

struct TaskInput {
    address: Option<AddressDraft>,
    times: TaskTimes,
    details: TaskDetails,
}

impl TaskInput {
    fn task(
        &self,
        kind: TaskKind,
        delivery_id: DeliveryId,
        address: Address,
        window: TimeWindow,
        created_at: Timestamp,
    ) -> Task {
        Task {
            id: TaskId::new(),
            delivery_id,
            kind,
            state: TaskState::Todo,
            state_since: created_at,
            state_set_by: Actor::Shop,
            address,
            window,
            has_time_slot: self.times.slot.is_some(),
            details: self.details.clone(),
            place: None,
            open_incidents: 0,
            images: Vec::new(),
            created_at,
            updated_at: created_at,
        }
    }
}

/// Plans deliveries, geocodes their addresses, and issues and reads quotes.
pub(crate) struct Planner {
    pub(crate) definitions: Definitions,
    pub(crate) geocoder: Chain,
    pub(crate) required_precision: Precision,
    pub(crate) router: Router,
    pub(crate) secret_box: Arc<SecretBox>,
    pub(crate) clock: Clock,
    /// The platform's country: for telephone numbers in national form, not for geocoding.
    pub(crate) country: Country,
}

impl Planner {
    /// Plans a delivery for the caller's store, under the terms of the quote if one is charged.
    /// Reports the violations found by the gateway too. The policy is that of the time slot, the price
    /// list and the zones.
    #[expect(clippy::too_many_lines, reason = "the steps of a plan, in their order")]
    pub(crate) async fn plan(
        &self,
        caller: &Caller,
        draft: Option<proto::DeliveryDraft>,
        found: Vec<proto::Violation>,
        quote_use: QuoteUse,
        policy: CachePolicy,
    ) -> Result<PlannedDelivery, Error> {
        let store = caller.store()?;
        let draft = draft.unwrap_or_default();
        let named = match &draft.retail_price {
            Some(name) => self.look_up_quote(store.id, name, quote_use),
            None => Ok(None),
        };
        let quote = named.as_ref().ok().and_then(Option::as_ref);
        let now = self.clock.now().to_zoned(store.time_zone.clone());
        // "Tomorrow" is relative to the time of the quote.
        let relative_to = quote
            .map_or(now.timestamp(), |quote| quote.calculated_at)
            .to_zoned(now.time_zone().clone());
        let context = ParseContext {
            now: &relative_to,
            date_order: DateOrder::of_country(store.country.as_str()),
            country: telephone::national_country(Some(&store.country), &self.country).as_str(),
        };
        let mut violations = messages::read_violations(found);

        let external_reference =
            validation::external_reference(draft.external_reference, &mut violations);
        let [mut pickup, mut dropoff] =
            task_inputs(draft.pickup, draft.dropoff, &context, &mut violations);
        let definitions = &self.definitions;
        let mut versions = DefinitionVersions::default();
        let price_list = definitions
            .price_list(store.id, policy, &mut versions)
            .await?;
        // A quote stays binding even if the price list has changed since.
        if let (Some(price_list), None) = (&price_list, quote) {
            check_packages("pickup", &pickup.details, price_list, &mut violations);
            check_packages("dropoff", &dropoff.details, price_list, &mut violations);
        }
        let availability = SlotAvailability::read(definitions, store, policy, &now).await?;
        if let Some(availability) = &availability {
            versions.time_slot = Some(Arc::clone(&availability.stored));
            availability.check(&pickup.times, &dropoff.times, &now, &mut violations);
        }
        let slot = availability.and_then(|availability| availability.booking(dropoff.times.slot));
        let (booking, capacity) = slot.unzip();

        let coverage = definitions.coverage(store, policy, &mut versions).await?;
        let area = StoreArea {
            id: Some(store.id),
            coverage: &coverage,
        };
        let from = self
            .pickup_address(caller, area, pickup.address.take(), &mut violations)
            .await?;
        let to = self
            .dropoff_address(area, dropoff.address.take(), &mut violations)
            .await?;
        let route = match (&from, &to) {
            (Some(from), Some(to)) => self.route(quote, from, to, &mut violations).await?,
            _ => None,
        };
        let windows = delivery::task_windows(
            &pickup.times,
            &dropoff.times,
            route,
            now.time_zone(),
            &mut violations,
        );

        let (Some(from), Some(to), Some(route), Some(windows), true) =
            (from, to, route, windows, violations.is_empty())
        else {
            if let Err(unusable) = named {
                unusable.add_violation(&mut violations);
            }
            return Err(Error::Invalid(violations));
        };
        let quote = named?;
        let (id, created_at) = (DeliveryId::new(), now.timestamp());
        let mut delivery = Delivery {
            id,
            store_id: store.id,
            pickup: pickup.task(TaskKind::Pickup, id, from, windows.pickup, created_at),
            dropoff: dropoff.task(TaskKind::Dropoff, id, to, windows.dropoff, created_at),
            route,
            price: None,
            retail_price: quote.as_ref().map(|quote| quote.name.clone()),
            booking,
            created_at,
            external_reference,
            is_erased: false,
            tracking: None,
        };
        if let Some(quote) = &quote {
            quotes::check_delivery(quote, &delivery, pickup.times.is_end_requested)?;
        }
        let list = price_list.as_deref();
        let calculation = calculate(&delivery, quote.as_ref(), list, store, &now);
        delivery.price = calculation.price;
        check_price(store, list, &calculation, &mut violations)?;
        warn_of_distance(store, &delivery, &mut violations);
        delivery::warn_of_past_times("pickup", &pickup.times, &now, &mut violations);
        delivery::warn_of_past_times("dropoff", &dropoff.times, &now, &mut violations);
        Ok(PlannedDelivery {
            delivery,
            calculation,
            price_list,
            quote_id: quote.map(|quote| quote.id),
            capacity,
            warnings: violations.into_warnings(),
            versions,
        })
    }

    /// The route: that of the quote, if it is for the same addresses.
    async fn route(
        &self,
        quote: Option<&Quote>,
        from: &Address,
        to: &Address,
        violations: &mut Violations,
    ) -> Result<Option<Route>, Error> {
        if let Some(quote) = quote.filter(|quote| quote.fingerprint.matches_addresses(from, to)) {
            return Ok(Some(quote.route));
        }
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

/// Checks that a delivery has a price: without one it is an error if the store refuses it, or else a
/// warning if there is a price list.
fn check_price(
    store: &Store,
    price_list: Option<&PriceList>,
    calculation: &Calculation,
    violations: &mut Violations,
) -> Result<(), Error> {
    if calculation.price.is_some() || (price_list.is_none() && !store.refuses_unpriced) {
        return Ok(());
    }
    if store.refuses_unpriced {
        return Err(Error::price_not_calculated(&calculation.outcomes));
    }
    let rules = calculation.outcomes.iter().take(MAX_EXPLAINED_RULES);
    let rules: Vec<_> = rules
        .map(|rule| format!("{}: {}", rule.rule, rule.reason))
        .collect();
    let explanation = format!("the delivery has no price: {}", rules.join("; "));
    violations.warn("", PRICE_NOT_CALCULATED, explanation);
    Ok(())
}

/// Warns of a dropoff in another part of the country or of the world, unless a service area already
/// permits it.
fn warn_of_distance(store: &Store, delivery: &Delivery, violations: &mut Violations) {
    let [from, to] = [&delivery.pickup, &delivery.dropoff].map(|task| task.address.lat_lng);
    let kilometers = from.distance_meters(to) / 1000.0;
    if store.service_area.is_none() && kilometers > FAR_KILOMETERS {
        let explanation = format!("is {kilometers:.0} km from the pickup, in a straight line");
        violations.warn("dropoff.address", "FAR_AWAY", explanation);
    }
}

/// The price of a delivery: that of the quote, or the price list's.
fn calculate(
    delivery: &Delivery,
    quote: Option<&Quote>,
    price_list: Option<&PriceList>,
    store: &Store,
    now: &Zoned,
) -> Calculation {
    match (quote, price_list) {
        (Some(quote), _) => Calculation {
            price: Some(quote.price),
            outcomes: Vec::new(),
        },
        (None, Some(list)) => list.calculate(delivery, &store.display_name, now),
        (None, None) => Calculation::without_list(),
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
    let bytes = validation::text_bytes(&input.details)
        + input.address.as_ref().map_or(0, AddressDraft::text_bytes);
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
            let types: Vec<_> = price_list.package_types().collect();
            let known = match types.as_slice() {
                [] => "the store has none".to_owned(),
                types => format!("the store has {}", types.join(", ")),
            };
            violations.add(
                format!("{task}.packages[{index}].type"),
                "UNKNOWN_PACKAGE",
                format!("there is no package type {:?}: {known}", package.kind),
            );
        }
    }
}
