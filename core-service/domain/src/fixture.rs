//! A delivery for tests.

use jiff::Timestamp;

use crate::{
    delivery::{Delivery, DistanceSource, Route},
    price_list::sample,
    task::{TaskDetails, TimeWindow},
};

/// A delivery to do, over a distance.
pub(crate) fn delivery(meters: u32) -> Delivery {
    let at = |second| Timestamp::from_second(second).unwrap();
    let mut delivery = sample(None, &TaskDetails::default());
    for task in [&mut delivery.pickup, &mut delivery.dropoff] {
        task.address.street_address = "24 Rue de la Paix".to_owned();
        task.window = TimeWindow {
            after: at(1000),
            before: at(2000),
        };
    }
    let route = Route {
        distance_meters: meters,
        duration_seconds: meters / 4,
        source: DistanceSource::StraightLine,
    };
    Delivery { route, ..delivery }
}
