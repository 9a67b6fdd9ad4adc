//! How many instructions the functions of a request's hot path execute, as valgrind counts them: other
//! load on the machine does not change the count. Of an unoptimized build, so the counts say little
//! about the release; but more work per request is seen.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used, reason = "a panic fails the test and shows where")]
#![expect(clippy::disallowed_methods, reason = "tells the two processes apart")]
#![expect(clippy::print_stdout, reason = "the counts are for the next bounds")]

#[path = "../benches/delivery/mod.rs"]
mod delivery;
#[path = "../../../tests/e2e/harness/prerequisites.rs"]
mod prerequisites;

use std::{hint::black_box, process::Command};

use domain::{
    before::{DateOrder, parse},
    price_list::PriceList,
    time_slot::{
        TimeSlot,
        label::{Language, label},
    },
    zone::Zones,
};
use jiff::Zoned;

const LIST: &str = include_str!("../../../examples/prices.toml");
const ZONES: &str = include_str!("../../../examples/zones.geojson");
const TIME_SLOT: &str = "name = \"Lunch\"\nopening_hours = [\"Mo-Su 10:00-20:00\"]\n\
    slot_length = \"2 hours\"\ninterval = \"7 days\"\n";

/// What a process that this test starts under valgrind measures.
const MEASURED: &str = "DELIVERY_TEST_MEASURED";

/// What is measured, and what was counted.
const COUNTED: [(&str, u64); 5] = [
    ("a date and time", 57_200),
    ("a day and a time of day", 33_000),
    ("a price", 161_700),
    ("choices of time slots", 662_600),
    ("the label of a time slot", 28_860),
];

/// A fourth more than counted is allowed.
#[test]
fn hot_functions_execute_hardly_more_instructions_than_they_did() {
    if let Ok(name) = std::env::var(MEASURED) {
        return execute(&name);
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        return prerequisites::skip("instruction counts", "valgrind is not installed");
    }
    let counts = COUNTED.map(|(name, counted)| (name, counted, count(name)));
    for (name, counted, instructions) in counts {
        println!("{name}: {instructions} instructions, {counted} before");
    }
    for (name, counted, instructions) in counts {
        assert!(instructions <= counted * 5 / 4, "{name}: {instructions}");
        assert!(instructions > 1000, "{name} is not measured");
    }
}

/// The instructions that one call of what has this name executes.
fn count(name: &str) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=instructions::measured")
        .arg(std::env::current_exe().unwrap())
        .env(MEASURED, name)
        .output()
        .unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}{log}");
    let collected = log
        .lines()
        .find_map(|line| line.split("Collected : ").nth(1));
    collected.expect(&log).trim().parse().unwrap()
}

/// Calls what has this name twice: the first call fills caches, the second is measured.
fn execute(name: &str) {
    let now: Zoned = "2025-04-02T12:00:00+02:00[Europe/Paris]".parse().unwrap();
    let before = |text| {
        parse(black_box(text), &now, DateOrder::DayFirst).unwrap();
    };
    match name {
        "a date and time" => twice(&|| before("2025-04-02T14:00:00+02:00")),
        "a day and a time of day" => twice(&|| before("tomorrow 13:00")),
        "a price" => {
            let list = PriceList::parse(LIST, &Zones::parse(ZONES).unwrap()).unwrap();
            let delivery = delivery::delivery(&now);
            twice(&|| assert!(list.calculate(&delivery, "Shop", &now).price.is_some()));
        }
        "choices of time slots" => {
            let slot = TimeSlot::parse(TIME_SLOT, "FR").unwrap();
            twice(&|| assert_eq!(slot.choices(&now, |_| 0).len(), 35));
        }
        "the label of a time slot" => {
            let slot = TimeSlot::parse(TIME_SLOT, "FR").unwrap();
            let window = slot.choices(&now, |_| 0)[20];
            let language = Language::with_tag(Some("fr"));
            twice(&|| assert!(!label(window, &now, language).is_empty()));
        }
        name => panic!("{name} is unknown"),
    }
}

fn twice(call: &dyn Fn()) {
    call();
    measured(call);
}

/// What valgrind counts.
#[inline(never)]
fn measured(call: &dyn Fn()) {
    call();
}
