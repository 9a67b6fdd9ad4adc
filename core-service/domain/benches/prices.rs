//! Time to calculate a price for a given route. Run with `cargo bench -p domain --bench prices`.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its results, and panics on errors"
)]

mod delivery;

use std::{hint::black_box, time::Instant};

use domain::{price_list::PriceList, zone::Zones};
use jiff::Zoned;

const LIST: &str = include_str!("../../../examples/prices.toml");
const ZONES: &str = include_str!("../../../examples/zones.geojson");
const ROUNDS: usize = 200;
const ITERATIONS_PER_ROUND: u32 = 500;

fn main() {
    let zones = Zones::parse(ZONES).unwrap();
    let (head, rules) = LIST.split_at(LIST.find("[[rule]]").unwrap());
    let lists = [
        (
            "20 bands, the last matches",
            head.replace("\"sum\"", "\"first\"") + &bands(20),
        ),
        ("20 bands, all evaluated", head.to_owned() + &bands(20)),
        (
            "the example's 9 rules twice and 2 bands",
            format!("{head}{rules}{rules}{}", bands(2)),
        ),
    ];
    for (name, definition) in lists {
        let list = PriceList::parse(&definition, &zones).unwrap();
        report(name, &list);
    }
}

/// Rules for distances up to 1 km, 2 km and so on.
fn bands(count: u32) -> String {
    let band = |band: u32| {
        format!(
            "[[rule]]\nname = \"Up to {band} km\"\nwhen = \"distance <= {}\"\nprice = {}\n",
            band * 1000,
            400 + band * 50
        )
    };
    (1..=count).map(band).collect::<Vec<_>>().concat()
}

fn report(name: &str, list: &PriceList) {
    let now: Zoned = "2025-04-02T12:00:00+02:00[Europe/Paris]".parse().unwrap();
    let delivery = delivery::delivery(&now);
    assert!(list.calculate(&delivery, "Shop", &now).price.is_some());
    let mut rounds: Vec<_> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..ITERATIONS_PER_ROUND {
                black_box(list.calculate(black_box(&delivery), "Shop", &now));
            }
            start.elapsed() / ITERATIONS_PER_ROUND
        })
        .collect();
    rounds.sort_unstable();
    let (median, p95) = (rounds[ROUNDS / 2], rounds[ROUNDS * 95 / 100]);
    println!("{name}: {median:?} each (median; 95 % of rounds within {p95:?})");
}
