//! Sample deliveries, with which the conditions of a price list are evaluated to check them.

use jiff::{Timestamp, Zoned, tz::TimeZone};
use uuid::Uuid;

use super::{Totals, definition::Packages, variables::Variables};
use crate::{
    address::{Address, LatLng},
    delivery::{Delivery, DistanceSource, Route},
    id::{AddressId, DeliveryId, StoreId, TaskId},
    task::{Actor, Package, Task, TaskDetails, TaskKind, TaskState, TimeWindow},
};

pub(super) struct SampleInput {
    delivery: Delivery,
    totals: Totals,
    now: Zoned,
}

const TEXT: &str = "placeholder";

/// A delivery with every optional value that conditions can read, and one with none.
pub(super) fn sample_inputs(types: Option<&Packages>) -> [SampleInput; 2] {
    let kinds = types.into_iter().flat_map(Packages::keys);
    let packages = kinds.map(|kind| Package {
        kind: kind.get_ref().clone(),
        quantity: 1,
    });
    let details = TaskDetails {
        weight: Some(1),
        packages: packages.collect(),
        tags: vec![TEXT.to_owned()],
        ..TaskDetails::default()
    };
    let mut full = SampleInput::new(sample(Some(TEXT), &details), types);
    full.totals.volume = Some(1);
    let empty = sample(None, &TaskDetails::default());
    [full, SampleInput::new(empty, types)]
}

impl SampleInput {
    fn new(delivery: Delivery, types: Option<&Packages>) -> Self {
        Self {
            totals: Totals::of(&delivery, types),
            delivery,
            now: Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC),
        }
    }

    pub(super) fn variables(&self) -> Variables<'_> {
        Variables::new(&self.delivery, &self.totals, TEXT, &self.now)
    }
}

/// A delivery whose addresses have this text in each optional part.
pub(crate) fn sample(text: Option<&str>, details: &TaskDetails) -> Delivery {
    let (id, now) = (DeliveryId::new(), Timestamp::UNIX_EPOCH);
    let text = text.map(str::to_owned);
    let task = |kind| Task {
        id: TaskId::new(),
        delivery_id: id,
        kind,
        state: TaskState::Todo,
        state_since: now,
        state_set_by: Actor::Shop,
        address: Address {
            id: AddressId(Uuid::nil()),
            street_address: String::new(),
            lat_lng: LatLng::new(0.0, 0.0).expect("0, 0 is a valid position"),
            place_name: None,
            contact_name: None,
            telephone: None,
            description: None,
            postal_code: text.clone(),
            locality: text.clone(),
            country: text.clone(),
        },
        window: TimeWindow {
            after: now,
            before: now,
        },
        has_time_slot: false,
        details: details.clone(),
        place: None,
        open_incidents: 0,
        images: Vec::new(),
        created_at: now,
        updated_at: now,
    };
    Delivery {
        id,
        store_id: StoreId::new(),
        pickup: task(TaskKind::Pickup),
        dropoff: task(TaskKind::Dropoff),
        route: Route {
            distance_meters: 1,
            duration_seconds: 1,
            source: DistanceSource::StraightLine,
        },
        price: None,
        retail_price: None,
        booking: None,
        created_at: now,
        external_reference: None,
        is_erased: false,
        tracking: None,
    }
}
