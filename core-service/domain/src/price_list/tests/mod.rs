//! Whole price lists, from TOML to the prices of deliveries.

mod condition_errors;
mod conditions;
mod errors;
mod limits;
mod prices;
mod properties;
mod warnings;

use iso_currency::Currency;
use jiff::{SignedDuration, Zoned};

use super::{Calculation, PriceList, RuleOutcome};
use crate::{
    address::LatLng,
    definition::Mistake,
    delivery::Delivery,
    fixture,
    money::Price,
    task::{Package, TimeWindow},
    zone::{Area, Polygon, Zones},
};

const BANDS: &str = r#"
currency = "EUR"
tax = { name = "VAT", rate = 2000 }
strategy = "first"

[[rule]]
name = "Near"
when = "distance <= 3000"
price = 499

[[rule]]
name = "Far"
when = "distance <= 8000"
price = 899
"#;

/// Wednesday 2 April 2025, 12:00 in Paris.
fn now() -> Zoned {
    "2025-04-02T12:00:00+02:00[Europe/Paris]".parse().unwrap()
}

fn delivery_over(meters: u32) -> Delivery {
    let now = now().timestamp();
    let mut delivery = fixture::delivery(meters);
    for task in [&mut delivery.pickup, &mut delivery.dropoff] {
        task.address.lat_lng = LatLng::new(48.87, 2.33).unwrap();
        task.address.postal_code = Some("75002".into());
        task.window = TimeWindow {
            after: now + SignedDuration::from_hours(8),
            before: now + SignedDuration::from_mins(9 * 60 + 30),
        };
    }
    delivery
}

fn list(strategy: &str, rules: &str) -> PriceList {
    parse(strategy, rules).unwrap_or_else(|mistakes| panic!("{mistakes:?} in {rules}"))
}

fn parse(strategy: &str, rules: &str) -> Result<PriceList, Vec<Mistake>> {
    let definition = format!(
        "currency = \"EUR\"\ntax = {{ name = \"VAT\", rate = 2000 }}\nstrategy = \"{strategy}\"\n\
         [packages]\nXL = {{ volume = 8 }}\nS = {{ volume = 1 }}\n{rules}"
    );
    let square = [
        (48.0, 2.0),
        (48.0, 3.0),
        (49.0, 3.0),
        (49.0, 2.0),
        (48.0, 2.0),
    ]
    .map(|(latitude, longitude)| LatLng::new(latitude, longitude).unwrap());
    let centre = Area::new(vec![Polygon::new(vec![square.to_vec()])]);
    PriceList::parse(
        &definition,
        &Zones::from_iter([("centre".to_owned(), centre)]),
    )
}

fn rule(when: &str, price: &str) -> String {
    format!("[[rule]]\nname = \"R\"\nwhen = '''{when}'''\nprice = {price}\n")
}

fn gross(list: &PriceList, delivery: &Delivery) -> Option<i64> {
    list.calculate(delivery, "Demo shop", &now())
        .price
        .map(Price::gross)
}

/// Whether a condition matches a delivery.
fn matches(when: &str, delivery: &Delivery) -> bool {
    gross(&list("first", &rule(when, "1")), delivery).is_some()
}
