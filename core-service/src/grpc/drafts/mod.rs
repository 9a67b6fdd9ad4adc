//! What a client asks for, field by field: from messages to checked values, every violation
//! noted.

use std::collections::BTreeMap;

use jiff::{Timestamp, ToSpan as _, Zoned};

use domain::{
    address::LatLng,
    before::{self, DateOrder},
    store::Country,
    task::{Package, TimeWindow},
    telephone,
    time_slot::window,
    violation::Violations,
};

#[cfg(test)]
mod tests;

/// Limits, in characters but for the lists. They are generous; what exceeds them is a mistake.
const TEXT: usize = 500;
const LONG_TEXT: usize = 5_000;
const NAME: usize = 200;
const TAG: usize = 64;
const TAGS: usize = 50;
const METADATA: usize = 50;
const PACKAGES: usize = 100;
const PACKAGE_QUANTITY: u32 = 10_000;
/// Grams: a hundred tonnes.
const WEIGHT: i64 = 100_000_000;

/// In what a store's texts are read.
pub(super) struct Reading<'a> {
    pub(super) now: &'a Zoned,
    pub(super) date_order: DateOrder,
    /// ISO 3166-1 alpha-2: national telephone numbers are read in it.
    pub(super) country: &'a str,
}

/// An address, checked but perhaps without a point yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AddressDraft {
    /// Empty only with a point.
    pub(super) text: String,
    pub(super) lat_lng: Option<LatLng>,
    pub(super) place_name: Option<String>,
    pub(super) contact_name: Option<String>,
    pub(super) telephone: Option<String>,
    pub(super) description: Option<String>,
    pub(super) postal_code: Option<String>,
    pub(super) locality: Option<String>,
    pub(super) country: Option<String>,
}

/// When a task is to happen, as far as its client says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) slot: Option<TimeWindow>,
    pub(super) before: Option<Timestamp>,
    pub(super) after: Option<Timestamp>,
    /// Whether any of these was said, even wrongly.
    pub(super) said: bool,
}

/// What a task's client says beside where and when.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Load {
    pub(super) comments: String,
    pub(super) weight: Option<i64>,
    pub(super) packages: Vec<Package>,
    pub(super) tags: Vec<String>,
    pub(super) metadata: BTreeMap<String, String>,
}

/// What a store calls a delivery; blank is as absent.
pub(super) fn external_reference(
    text: Option<String>,
    violations: &mut Violations,
) -> Option<String> {
    checked_text("external_reference", &text?, NAME, violations)
}

/// An address; none if it says neither a text nor a point.
pub(super) fn address(
    field: &str,
    draft: Option<proto::task_draft::Address>,
    country: &str,
    violations: &mut Violations,
) -> Option<AddressDraft> {
    match draft? {
        proto::task_draft::Address::AddressText(text) => {
            let text = checked_text(field, &text, TEXT, violations)?;
            Some(AddressDraft {
                text,
                ..AddressDraft::default()
            })
        }
        proto::task_draft::Address::AddressDraft(draft) => {
            address_object(field, draft, country, violations)
        }
    }
}

pub(super) fn address_object(
    field: &str,
    draft: proto::AddressDraft,
    country: &str,
    violations: &mut Violations,
) -> Option<AddressDraft> {
    let mut text = |name: &str, text: Option<String>, limit| {
        checked_text(&format!("{field}.{name}"), &text?, limit, violations)
    };
    let has_point = draft.lat_lng.is_some();
    let street_address =
        text("street_address", draft.street_address.clone(), TEXT).map(|trimmed| {
            // Beside a point, the text is the client's own and stays exactly as it is.
            draft
                .street_address
                .filter(|_| has_point)
                .unwrap_or(trimmed)
        });
    let mut address = AddressDraft {
        place_name: text("place_name", draft.place_name, NAME),
        contact_name: text("contact_name", draft.contact_name, NAME),
        description: text("description", draft.description, LONG_TEXT),
        postal_code: text("postal_code", draft.postal_code, NAME),
        locality: text("address_locality", draft.address_locality, NAME),
        ..AddressDraft::default()
    };
    if let Some(code) = draft.address_country.filter(|code| !code.trim().is_empty()) {
        let parsed = code.trim().parse::<Country>();
        address.country = violations
            .check(
                format!("{field}.address_country"),
                "UNKNOWN_COUNTRY",
                parsed,
            )
            .map(|country| country.as_str().to_owned());
    }
    if let Some(number) = draft.telephone {
        let field = format!("{field}.telephone");
        let parsed = telephone::parse(&number, country);
        address.telephone = violations
            .check(field, "INVALID_TELEPHONE", parsed)
            .flatten();
    }
    if let Some(point) = draft.lat_lng {
        let parsed = LatLng::new(point.latitude, point.longitude);
        address.lat_lng = violations.check(format!("{field}.lat_lng"), "INVALID_POINT", parsed);
    }
    if street_address.is_none() && !has_point {
        return None;
    }
    address.text = street_address.unwrap_or_default();
    Some(address)
}

/// The times of a task. `timeSlot` wins over `before`; both blank are as absent.
pub(super) fn times(
    field: &str,
    draft: &proto::TaskDraft,
    reading: &Reading<'_>,
    violations: &mut Violations,
) -> Times {
    let said = |text: &Option<String>| {
        text.as_deref()
            .map(str::trim)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let (slot, before, after) = (
        said(&draft.time_slot),
        said(&draft.before),
        said(&draft.after),
    );
    let mut times = Times {
        said: slot.is_some() || before.is_some(),
        ..Times::default()
    };
    if let Some(text) = slot {
        let parsed = window::parse(&text, reading.now.time_zone());
        let field = format!("{field}.time_slot");
        times.slot = violations
            .check(&field, "INVALID_TIME_SLOT", parsed)
            .filter(|slot| {
                is_sensible(&field, slot.after, reading.now, violations)
                    && is_sensible(&field, slot.before, reading.now, violations)
            });
    } else if let Some(text) = before {
        times.before = instant(&format!("{field}.before"), &text, reading, violations);
    }
    if let Some(text) = after {
        times.after = instant(&format!("{field}.after"), &text, reading, violations);
    }
    times
}

pub(super) fn load(field: &str, draft: proto::TaskDraft, violations: &mut Violations) -> Load {
    let comments = draft
        .comments
        .and_then(|text| checked_text(&format!("{field}.comments"), &text, LONG_TEXT, violations))
        .unwrap_or_default();
    if draft
        .weight
        .is_some_and(|weight| !(0..=WEIGHT).contains(&weight))
    {
        violations.add(
            format!("{field}.weight"),
            "OUT_OF_RANGE",
            format!("must be from 0 to {WEIGHT} (grams)"),
        );
    }
    Load {
        comments,
        weight: draft.weight,
        packages: packages(&format!("{field}.packages"), draft.packages, violations),
        tags: tags(&format!("{field}.tags"), draft.tags, violations),
        metadata: metadata(&format!("{field}.metadata"), draft.metadata, violations),
    }
}

/// A required name of something, such as a store's.
pub(super) fn display_name(field: &str, text: &str, violations: &mut Violations) -> String {
    let name = checked_text(field, text, NAME, violations);
    if name.is_none() {
        violations.add(field, "REQUIRED", "is required");
    }
    name.unwrap_or_default()
}

fn packages(
    field: &str,
    packages: Vec<proto::Package>,
    violations: &mut Violations,
) -> Vec<Package> {
    if packages.len() > PACKAGES {
        violations.add(field, "TOO_MANY", format!("must be at most {PACKAGES}"));
        return Vec::new();
    }
    let mut checked = Vec::with_capacity(packages.len());
    for (index, package) in packages.into_iter().enumerate() {
        let field = format!("{field}[{index}]");
        if !(1..=PACKAGE_QUANTITY).contains(&package.quantity) {
            violations.add(
                format!("{field}.quantity"),
                "OUT_OF_RANGE",
                format!("must be from 1 to {PACKAGE_QUANTITY}"),
            );
        }
        let kind = display_name(&format!("{field}.type"), &package.r#type, violations);
        checked.push(Package {
            kind,
            quantity: package.quantity,
        });
    }
    checked
}

fn tags(field: &str, tags: Vec<String>, violations: &mut Violations) -> Vec<String> {
    if tags.len() > TAGS {
        violations.add(field, "TOO_MANY", format!("must be at most {TAGS}"));
        return Vec::new();
    }
    tags.into_iter()
        .enumerate()
        .filter_map(|(index, tag)| {
            checked_text(&format!("{field}[{index}]"), &tag, TAG, violations)
        })
        .collect()
}

fn metadata(
    field: &str,
    metadata: std::collections::HashMap<String, String>,
    violations: &mut Violations,
) -> BTreeMap<String, String> {
    if metadata.len() > METADATA {
        violations.add(
            field,
            "TOO_MANY",
            format!("must be at most {METADATA} members"),
        );
        return BTreeMap::new();
    }
    let metadata: BTreeMap<_, _> = metadata.into_iter().collect();
    for (key, value) in &metadata {
        let shown: String = key.chars().take(TAG).collect();
        let field = format!("{field}.{shown}");
        if key.chars().count() > TAG || key.contains(char::is_control) {
            violations.add(
                &field,
                "INVALID_KEY",
                format!(
                    "must have a key of at most {TAG} characters, none of them a control character"
                ),
            );
        }
        check_characters(&field, value, TEXT, violations);
    }
    metadata
}

fn instant(
    field: &str,
    text: &str,
    reading: &Reading<'_>,
    violations: &mut Violations,
) -> Option<Timestamp> {
    let parsed = before::parse(text, reading.now, reading.date_order);
    violations
        .check(field, "INVALID_TIME", parsed)
        .filter(|instant| is_sensible(field, *instant, reading.now, violations))
}

/// Times in the past are accepted, shops book after the fact; an absurd one is a slip.
fn is_sensible(field: &str, instant: Timestamp, now: &Zoned, violations: &mut Violations) -> bool {
    // 2000-01-01T00:00:00Z
    const EARLIEST: i64 = 946_684_800;
    let latest = now
        .checked_add(10.years())
        .map_or(Timestamp::MAX, |latest| latest.timestamp());
    let sensible = instant.as_second() >= EARLIEST && instant <= latest;
    if !sensible {
        let shown = instant.to_zoned(now.time_zone().clone());
        violations.add(
            field,
            "ABSURD_TIME",
            format!("was read as {shown}; must be from the year 2000 to ten years from now"),
        );
    }
    sensible
}

/// A text without blanks around it; none if nothing is left or it breaks a rule.
fn checked_text(
    field: &str,
    text: &str,
    limit: usize,
    violations: &mut Violations,
) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && check_characters(field, text, limit, violations)).then(|| text.to_owned())
}

fn check_characters(field: &str, text: &str, limit: usize, violations: &mut Violations) -> bool {
    if text.chars().count() > limit {
        violations.add(
            field,
            "TOO_LONG",
            format!("must be at most {limit} characters"),
        );
        return false;
    }
    let forbidden = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    if text.contains(forbidden) {
        violations.add(
            field,
            "CONTROL_CHARACTER",
            "must not contain control characters",
        );
        return false;
    }
    true
}
