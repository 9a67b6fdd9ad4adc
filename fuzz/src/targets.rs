//! The fuzz targets: what each reader of untrusted input must do with any bytes, besides not
//! panicking.

use domain::{
    before::{self, DateOrder},
    definition::Mistake,
    price_list::PriceList,
    time_slot::{TimeSlot, window},
    zone::Zones,
};
use egress::Policy;
use jiff::{Timestamp, Zoned, tz::TimeZone};
use proto::iri::{self, Collection};
use rest_gateway::{ViolationCollector, read_delivery_draft};
use serde::de::IgnoredAny;
use serde_json::Value;

/// The targets by name; `fuzz/corpus` has a directory for each.
pub(crate) const ALL: [(&str, fn(&[u8])); 11] = [
    ("accept", rest_gateway::fuzz::accept),
    (
        "address_file",
        geocoding::gazetteer::import::fuzz::address_file,
    ),
    ("before", |input| text(input, before)),
    ("delivery_body", delivery_body),
    ("forwarded", rest_gateway::fuzz::forwarded),
    ("geo_json", |input| text(input, geo_json)),
    ("iri", |input| text(input, resource_name)),
    ("price_list", |input| text(input, price_list)),
    ("time_slot_definition", |input| {
        text(input, time_slot_definition)
    }),
    ("time_slot_window", |input| text(input, time_slot_window)),
    ("webhook_url", |input| text(input, webhook_url)),
];

/// The longest message for a client, in characters: a message quotes only a part of a long input.
const MAX_MESSAGE: usize = 4_000;

fn text(input: &[u8], target: fn(&str)) {
    if let Ok(text) = std::str::from_utf8(input) {
        target(text);
    }
}

/// A message is one line that a terminal and a log show as it is.
#[track_caller]
fn assert_message(message: &str) {
    assert!(!message.is_empty(), "an empty line");
    assert!(!message.chars().any(char::is_control), "{message:?}");
    assert!(message.chars().count() <= MAX_MESSAGE, "{message:?}");
}

/// A mistake has a position inside the text.
#[track_caller]
fn assert_mistake(text: &str, mistake: &Mistake) {
    let Mistake {
        line,
        column,
        message,
    } = mistake;
    // A message may continue on further lines.
    message.lines().for_each(assert_message);
    let lines: Vec<_> = text.split('\n').collect();
    assert!((1..=lines.len()).contains(line), "{mistake}");
    let columns = lines[line - 1].chars().count();
    assert!((1..=columns + 1).contains(column), "{mistake}");
}

fn paris() -> Zoned {
    "2026-10-24T23:30[Europe/Paris]"
        .parse()
        .expect("an instant")
}

fn before(text: &str) {
    let now = paris();
    for order in [DateOrder::DayFirst, DateOrder::MonthFirst] {
        let parsed = before::parse(text, &now, order);
        match &parsed {
            Ok(instant) => {
                let written = instant.to_string();
                assert_eq!(written.parse::<Timestamp>().ok().as_ref(), Some(instant));
                // An RFC 3339 text is the same instant with either date order.
                assert_eq!(
                    before::parse(&written, &now, order).as_ref(),
                    Ok(instant),
                    "{written}"
                );
            }
            Err(error) => assert_message(&error.to_string()),
        }
        if text.len() < 100 {
            let padded = format!(" {text} ");
            assert_eq!(before::parse(&padded, &now, order), parsed);
        }
    }
}

fn time_slot_window(text: &str) {
    let zone = TimeZone::get("Europe/Paris").expect("time zones are compiled in");
    match window::parse(text, &zone) {
        Ok(parsed) => {
            assert!(parsed.after < parsed.before);
            let written = format!("{}/{}", parsed.after, parsed.before);
            assert_eq!(window::parse(&written, &zone).as_ref(), Ok(&parsed));
        }
        Err(error) => assert_message(&error.to_string()),
    }
}

fn resource_name(text: &str) {
    let name = iri::name(text);
    if text.starts_with(iri::PREFIX) {
        assert_eq!(iri::of(name), text);
    }
    let collections = [
        Collection::Deliveries,
        Collection::RetailPrices,
        Collection::Tasks,
    ];
    for collection in collections {
        if let Some(id) = collection.id(name) {
            assert_eq!(collection.name(id), name);
            assert_eq!(collection.last_segment(name), Some(&*id.to_string()));
        }
    }
}

fn webhook_url(text: &str) {
    let policies = [
        Policy::default(),
        Policy {
            allow_http: true,
            ..Policy::default()
        },
    ];
    for policy in policies {
        match policy.check_url(text) {
            Ok(url) => {
                assert!(url.scheme() == "https" || (policy.allow_http && url.scheme() == "http"));
                assert!(url.username().is_empty() && url.password().is_none());
                // Requests are sent to the returned URL: it must pass the check again.
                let again = policy.check_url(url.as_str());
                assert!(again.as_ref() == Ok(&url) || url.as_str().len() > egress::MAX_URL_LENGTH);
            }
            Err(error) => assert_message(&error.to_string()),
        }
    }
}

fn delivery_body(input: &[u8]) {
    let mut violations = ViolationCollector::default();
    let draft = read_delivery_draft(input, &mut violations);
    let found = violations.to_proto();
    assert!(found.len() <= 100);
    for violation in &found {
        assert_message(&violation.description);
    }
    // A path may contain a client's key, with any characters.
    let response = rest_gateway::fuzz::response_to(&violations);
    let reported = response["violations"].as_array();
    let reported: Vec<_> = reported.into_iter().flatten().collect();
    assert_eq!(reported.is_empty(), found.is_empty());
    for violation in &reported {
        let path = violation["propertyPath"].as_str().unwrap();
        assert!(!path.chars().any(char::is_control), "{path:?}");
    }
    let lines = response["detail"].as_str().unwrap_or_default().lines();
    assert_eq!(lines.count(), reported.len());
    // Another parser reads the same JSON, written differently, as the same delivery. It rejects texts of
    // unknown members that are not Unicode.
    let body = input.strip_prefix(b"\xef\xbb\xbf").unwrap_or(input);
    if found.is_empty() {
        serde_json::from_slice::<IgnoredAny>(body).expect("a body without violations is JSON");
    }
    if found.is_empty()
        && let Ok(value) = serde_json::from_slice::<Value>(body)
    {
        let mut violations = ViolationCollector::default();
        let again = read_delivery_draft(value.to_string().as_bytes(), &mut violations);
        assert_eq!(violations.to_proto(), []);
        assert_eq!(again, draft);
    }
}

fn geo_json(text: &str) {
    match Zones::parse(text) {
        Ok(zones) => {
            let written = zones.to_geo_json();
            assert_eq!(Zones::parse(&written).as_ref(), Ok(&zones), "{written}");
            assert_eq!(zones.check_size(), Ok(()));
        }
        Err(mistake) => assert_mistake(text, &mistake),
    }
}

fn price_list(text: &str) {
    let zones = Zones::default();
    match PriceList::parse(text, &zones) {
        Ok(list) => {
            list.warnings
                .iter()
                .for_each(|warning| assert_message(warning));
            let in_own_currency = PriceList::parse_in(Some(list.currency), text, &zones);
            assert!(in_own_currency.is_ok());
        }
        Err(mistakes) => {
            assert!(!mistakes.is_empty());
            mistakes
                .iter()
                .for_each(|mistake| assert_mistake(text, mistake));
        }
    }
}

fn time_slot_definition(text: &str) {
    match TimeSlot::parse(text, "FR") {
        Ok(time_slot) => {
            let now = paris();
            let choices = time_slot.choices(&now, |_| 0);
            assert!(choices.is_sorted_by_key(|choice| (choice.after, choice.before)));
            for choice in choices.iter().take(20) {
                assert!(choice.after < choice.before);
                assert!(
                    time_slot.rejection(*choice, &now, |_| 0).is_none(),
                    "{choice:?}"
                );
            }
        }
        Err(mistakes) => {
            assert!(!mistakes.is_empty());
            mistakes
                .iter()
                .for_each(|mistake| assert_mistake(text, mistake));
        }
    }
}
