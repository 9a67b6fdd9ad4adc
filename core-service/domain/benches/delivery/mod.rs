//! A delivery to calculate prices of.

use domain::{
    address::{Address, LatLng},
    delivery::{Delivery, DistanceSource, Route},
    id::{AddressId, DeliveryId, StoreId, TaskId},
    task::{Actor, Package, Task, TaskDetails, TaskKind, TaskState, TimeWindow},
};
use jiff::{SignedDuration, Zoned};

pub(crate) fn delivery(now: &Zoned) -> Delivery {
    let (id, now) = (DeliveryId::new(), now.timestamp());
    let task = |kind, latitude, longitude| Task {
        id: TaskId::new(),
        delivery_id: id,
        kind,
        state: TaskState::Todo,
        state_since: now,
        state_set_by: Actor::Shop,
        address: Address {
            id: AddressId::new(),
            street_address: "48 Rue de Rivoli, 75004 Paris".to_owned(),
            lat_lng: LatLng::new(latitude, longitude).unwrap(),
            place_name: None,
            contact_name: None,
            telephone: None,
            description: None,
            postal_code: Some("75004".to_owned()),
            locality: Some("Paris".to_owned()),
            country: Some("FR".to_owned()),
        },
        window: TimeWindow {
            after: now + SignedDuration::from_hours(8),
            before: now + SignedDuration::from_hours(10),
        },
        has_time_slot: true,
        details: TaskDetails {
            weight: Some(12_000),
            packages: vec![Package {
                kind: "XL".to_owned(),
                quantity: 2,
            }],
            tags: vec!["cold".to_owned()],
            ..TaskDetails::default()
        },
        place: None,
        open_incidents: 0,
        images: Vec::new(),
        created_at: now,
        updated_at: now,
    };
    Delivery {
        id,
        store_id: StoreId::new(),
        pickup: task(TaskKind::Pickup, 48.8566, 2.3530),
        dropoff: task(TaskKind::Dropoff, 48.8558, 2.3551),
        route: Route {
            distance_meters: 19_500,
            duration_seconds: 4_000,
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
