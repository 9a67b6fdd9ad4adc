//! A delivery to calculate prices of.

use std::collections::BTreeMap;

use domain::{
    address::{Address, LatLng},
    delivery::{DeliveryPlan, DistanceSource, Route},
    id::AddressId,
    task::{Package, TaskPlan, TimeWindow},
};
use jiff::{SignedDuration, Zoned};

pub(crate) fn plan(now: &Zoned) -> DeliveryPlan {
    let now = now.timestamp();
    let task = |latitude, longitude| TaskPlan {
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
        comments: String::new(),
        weight: Some(12_000),
        packages: vec![Package {
            kind: "XL".to_owned(),
            quantity: 2,
        }],
        tags: vec!["cold".to_owned()],
        metadata: BTreeMap::new(),
    };
    DeliveryPlan {
        pickup: task(48.8566, 2.3530),
        dropoff: task(48.8558, 2.3551),
        route: Route {
            distance_meters: 19_500,
            duration_seconds: 4_000,
            source: DistanceSource::StraightLine,
        },
    }
}
