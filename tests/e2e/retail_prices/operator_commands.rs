//! The operator's commands on prices and zones.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::harness::{
    all_in_one::{AllInOne, run_delivery, run_delivery_json, stderr},
    definitions::zone,
};

const LIST: &str = r#"currency = "EUR"
tax = { name = "VAT", rate = 2000 }
strategy = "sum"

[[rule]]
name = "In town"
when = 'in_zone(dropoff.address, "Town")'
price = 599

[[rule]]
name = "Heavy"
when = "weight > 5000"
price = 100
"#;

#[test]
fn explain_shows_the_price_of_a_delivery_and_its_calculation() {
    let running = AllInOne::start_new(&[]);
    let data_dir = running.data_dir();
    let store = running.text("/store");
    let (list, zones_file) = (
        write(data_dir, "list.toml", LIST),
        write(
            data_dir,
            "town.geojson",
            &zone("Town", [2.2, 48.8, 2.5, 48.9]),
        ),
    );
    let payload = |weight: Value| {
        let text = json!({
            "pickup": { "address": { "streetAddress": "Here", "latLng": [48.8566, 2.3530] } },
            "dropoff": {
                "address": { "streetAddress": "There", "latLng": [48.8558, 2.3551] },
                "before": "tomorrow 13:00",
                "weight": weight,
            },
        });
        write(data_dir, "payload.json", &text.to_string())
    };

    let unknown = running.run(&["prices", "apply", &list, "--store", store]);
    assert_eq!(unknown.status.code(), Some(1));
    assert_eq!(
        stderr(&unknown),
        format!("{list}:7:34: unknown zone \"Town\"\n")
    );
    let zones = running.run_json(&["zones", "apply", &zones_file]);
    assert_eq!(
        zones,
        json!([{ "name": "Town", "positions": 5, "bounds": [48.8, 2.2, 48.9, 2.5] }])
    );
    assert_eq!(running.run_json(&["zones", "list"]), zones);
    running.run_json(&["prices", "apply", &list, "--store", store]);

    let without_weight = payload(Value::Null);
    let explain = ["prices", "explain", "--store", store, &without_weight];
    let explained = running.run_json(&explain);
    assert_eq!(
        explained,
        json!({
            "price": { "amount": 599, "net": 499, "tax": 100 },
            "currency": "EUR",
            "distance": 231,
            "duration": 55,
            "distance_source": "straight_line",
            "calculation": [
                {
                    "rule": "In town", "matched": true, "amount": 599,
                    "reason": "in_zone(dropoff.address, \"Town\") is true",
                },
                {
                    "rule": "Heavy", "matched": false, "amount": 0,
                    "reason": "can't evaluate weight > 5000: no weight is given",
                },
            ],
        })
    );
    assert_eq!(
        stdout(data_dir, &explain),
        "rule     matched  amount  reason\n\
         In town  yes      5.99    in_zone(dropoff.address, \"Town\") is true\n\
         Heavy    no       0.00    can't evaluate weight > 5000: no weight is given\n\
         \n\
         price     5.99 EUR, of which 1.00 tax\n\
         distance  231 m (straight_line)\n\
         duration  55 s\n"
    );

    let invalid = payload(json!(-5));
    let rejected = running.run(&["prices", "explain", "--store", store, &invalid]);
    assert_eq!(rejected.status.code(), Some(1));
    assert_eq!(
        stderr(&rejected),
        "dropoff.weight: must be from 0 to 100000000 (grams), not -5\n"
    );
}

/// `check` and `apply` report each mistake with line and column, and warn of rules that never match,
/// and of distances without a price.
#[test]
fn a_list_is_checked_before_it_is_applied() {
    let running = AllInOne::start_new(&[]);
    let data_dir = running.data_dir();
    let store = running.text("/store");
    let head = "currency = \"EUR\"\ntax = { name = \"VAT\", rate = 2000 }\nstrategy = \"first\"\n";
    let list = |conditions: &[&str]| {
        let rule = |(number, when): (usize, &&str)| {
            format!("[[rule]]\nname = \"{number}\"\nwhen = '{when}'\nprice = 1\n")
        };
        let rules: String = conditions.iter().enumerate().map(rule).collect();
        write(data_dir, "list.toml", &format!("{head}{rules}"))
    };

    let invalid = list(&[
        "distance <",
        "1 < distanse",
        "true || reach(store)",
        "in_zone(dropoff.address, \"Town\")",
        "count(packages, \"XXL\") > 1",
        "distance + 1",
        "weight",
    ]);
    let positions = ["6:19", "10:13", "14:22", "18:34", "22:25", "26:18", "30:9"];
    for command in [
        &["prices", "check", &invalid][..],
        &["prices", "apply", &invalid, "--store", store],
    ] {
        let rejected = running.run(command);
        assert_eq!(rejected.status.code(), Some(1));
        let found = stderr(&rejected);
        let found: Vec<_> = found.lines().collect();
        assert_eq!(found.len(), positions.len(), "{found:?}");
        for (line, position) in found.iter().zip(positions) {
            assert!(
                line.starts_with(&format!("{invalid}:{position}: ")),
                "{line}"
            );
        }
    }

    let questionable = list(&[
        "distance >= 500 && distance <= 3000",
        "distance >= 2500 && distance <= 5000",
        "distance > 600 && distance < 2000",
    ]);
    let warnings = [
        "\"2\" never matches: earlier rules match every distance in its bounds",
        "no rule has a price for distance from 0 to 499",
    ];
    let lines = warnings.map(|warning| format!("{questionable}: warning: {warning}\n"));
    let checked = running.run(&["prices", "check", &questionable]);
    assert!(checked.status.success());
    assert_eq!(stderr(&checked), lines.concat());
    let applied = running.run(&["prices", "apply", &questionable, "--store", store]);
    assert!(applied.status.success());
    assert_eq!(stderr(&applied), lines.concat());
    assert_eq!(
        running.run_json(&["prices", "check", &questionable]),
        json!({ "warnings": warnings })
    );
}

/// A list in another currency would charge a store in a currency that is not its own.
#[test]
fn a_list_in_another_currency_than_the_stores_is_refused() {
    let running = AllInOne::start_new(&[]);
    let data_dir = running.data_dir();
    let store = create_store(data_dir, "USD");
    let list = LIST.replace("in_zone(dropoff.address, \"Town\")", "true");
    let file = write(data_dir, "list.toml", &list.replace("2000", "20000"));
    let apply = ["prices", "apply", &file, "--store", &store];

    let rejected = running.run(&apply);
    assert_eq!(rejected.status.code(), Some(1));
    assert_eq!(
        stderr(&rejected),
        format!(
            "{file}:1:12: the store's currency is USD, not EUR: write the list in USD, or change \
             the store's currency first\n\
             {file}:2:30: 20000 is not a tax rate: write 0 to 10000 basis points (2000 is 20 %)\n"
        )
    );
    let checked = running.run(&["prices", "show", "--store", &store]);
    assert_eq!(checked.status.code(), Some(1), "none is stored");

    let file = write(data_dir, "list.toml", &list);
    let apply = ["prices", "apply", &file, "--store", &store];
    running.run_json(&["stores", "set", &store, "--currency", "EUR"]);
    running.run_json(&apply);
}

#[test]
fn the_price_of_a_delivery_is_explained_by_the_list_that_it_was_created_with() {
    let running = AllInOne::start_new(&[]);
    let data_dir = running.data_dir();
    let store = running.text("/store");
    let apply = |price: &str| {
        let definition = LIST.replace("in_zone(dropoff.address, \"Town\")", "true");
        let list = write(data_dir, "list.toml", &definition.replace("599", price));
        running.run_json(&["prices", "apply", &list, "--store", store])
    };
    let version = apply("599")["version"].clone();
    let draft = json!({
        "pickup": { "address": { "streetAddress": "Here", "latLng": [48.8566, 2.3530] } },
        "dropoff": {
            "address": { "streetAddress": "There", "latLng": [48.8558, 2.3551] },
            "before": "tomorrow 13:00",
        },
    });
    let delivery = running.call("/api/deliveries", &["-d", &draft.to_string()]);
    apply("999");

    let iri = delivery["@id"].as_str().unwrap();
    let explained = running.run_json(&["prices", "explain", "--delivery", iri]);

    let price = json!({ "amount": 599, "net": 499, "tax": 100 });
    assert_eq!(
        explained,
        json!({
            "price": price,
            "currency": "EUR",
            "distance": 231,
            "duration": 55,
            "distance_source": "straight_line",
            "price_list_version": version,
            "quote": null,
            "calculated_price": price,
            "calculation": [
                { "rule": "In town", "matched": true, "amount": 599, "reason": "true is true" },
                {
                    "rule": "Heavy", "matched": false, "amount": 0,
                    "reason": "can't evaluate weight > 5000: no weight is given",
                },
            ],
        })
    );
}

#[test]
fn explain_says_that_a_store_has_no_price_list() {
    let running = AllInOne::start_new(&[]);
    let data_dir = running.data_dir();
    let store = create_store(data_dir, "JPY");
    let draft = json!({
        "pickup": { "address": { "streetAddress": "Here", "latLng": [48.8566, 2.3530] } },
        "dropoff": {
            "address": { "streetAddress": "There", "latLng": [48.8558, 2.3551] },
            "before": "tomorrow 13:00",
        },
    });
    let payload = write(data_dir, "payload.json", &draft.to_string());
    let explain = ["prices", "explain", "--store", &store, &payload];

    assert_eq!(
        running.run_json(&explain),
        json!({
            "price": null,
            "currency": "JPY",
            "distance": 231,
            "duration": 55,
            "distance_source": "straight_line",
            "calculation": [{
                "rule": "(no price list)", "matched": false, "amount": 0,
                "reason": "the store has no price list",
            }],
        })
    );
    assert_eq!(
        stdout(data_dir, &explain),
        "rule             matched  amount  reason\n\
         (no price list)  no       0       the store has no price list\n\
         \n\
         price     none\n\
         distance  231 m (straight_line)\n\
         duration  55 s\n"
    );
}

#[test]
fn every_version_of_a_price_list_can_be_shown_unchanged() {
    let running = AllInOne::start_new(&[]);
    let data_dir = running.data_dir();
    let store = running.text("/store");
    // With the line ends of Windows, which are control characters.
    let list = |price: u32| {
        let definition = LIST.replace("in_zone(dropoff.address, \"Town\")", "true");
        definition
            .replace("599", &price.to_string())
            .replace('\n', "\r\n")
    };
    for price in [700, 800] {
        let file = write(data_dir, "list.toml", &list(price));
        running.run_json(&["prices", "apply", &file, "--store", store]);
    }

    let history = running.run_json(&["prices", "history", "--store", store]);

    // Version 1 is the demo store's.
    let versions: Vec<_> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["version"].as_u64().unwrap())
        .collect();
    assert_eq!(versions, [3, 2, 1]);
    assert!(history[0]["created_at"].is_string());
    let shown = |version: &str| {
        let show = ["prices", "show", "--store", store, "--version", version];
        running.run(&show)
    };
    assert_eq!(String::from_utf8_lossy(&shown("2").stdout), list(700));
    assert_eq!(shown("4").status.code(), Some(1));
}

/// Creates a store with a currency; returns its id.
fn create_store(data_dir: &Path, currency: &str) -> String {
    let create = ["stores", "create", "--name=Shop", "--currency", currency];
    let store = run_delivery_json(data_dir, &create);
    store["id"].as_str().unwrap().to_owned()
}

fn write(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn stdout(data_dir: &Path, arguments: &[&str]) -> String {
    let output = run_delivery(data_dir, arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}
