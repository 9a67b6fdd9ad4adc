//! Validates requested deliveries, field by field: parses messages and collects violations.

use std::collections::BTreeMap;

use jiff::{Timestamp, ToSpan as _, Zoned};

use domain::{
    address::LatLng,
    before::{self, DateOrder},
    delivery::TaskTimes,
    store::Country,
    task::{Package, TaskDetails},
    telephone,
    time_slot::window,
    violation::Violations,
    visible::{is_control, visible},
};
use proto::{
    iri,
    limits::{
        self, MAX_LONG_TEXT, MAX_METADATA, MAX_NAME, MAX_PACKAGES, MAX_TAG, MAX_TAGS,
        MAX_TASK_TEXTS, MAX_TEXT,
    },
};

use super::address_geocoder::AddressDraft;

#[cfg(test)]
mod tests;

/// The context in which texts are parsed.
pub(crate) struct ParseContext<'a> {
    pub(crate) now: &'a Zoned,
    pub(crate) date_order: DateOrder,
    /// ISO 3166-1 alpha-2, for national telephone numbers.
    pub(crate) country: &'a str,
}

/// The length of all texts of a task in bytes.
pub(crate) fn text_bytes(details: &TaskDetails) -> usize {
    let packages = details.packages.iter().map(|package| package.kind.len());
    let tags = details.tags.iter().map(String::len);
    let metadata = details
        .metadata
        .iter()
        .map(|(key, value)| key.len() + value.len());
    details.comments.len() + packages.chain(tags).chain(metadata).sum::<usize>()
}

/// Checks the length of a task's texts together: each list or text may be long, but not all. A text
/// that is too long by itself has its own violation.
pub(crate) fn check_total(field: &str, bytes: usize, violations: &mut Violations) {
    if bytes > MAX_TASK_TEXTS && !violations.has_violation_in(field) {
        violations.add(
            field,
            "TOO_LONG",
            format!("must have texts of at most {MAX_TASK_TEXTS} bytes together, not {bytes}"),
        );
    }
}

/// A store's own identifier of a delivery. Blank counts as absent.
pub(crate) fn external_reference(
    text: Option<String>,
    violations: &mut Violations,
) -> Option<String> {
    checked_text("external_reference", &text?, MAX_NAME, violations)
}

pub(crate) fn address(
    field: &str,
    draft: Option<proto::task_draft::Address>,
    country: &str,
    violations: &mut Violations,
) -> Option<AddressDraft> {
    match draft? {
        proto::task_draft::Address::AddressText(text) => {
            let text = checked_text(field, &text, MAX_TEXT, violations)?;
            // A geocoder could find something for it.
            if iri::is_iri(visible(&text).trim()) {
                violations.add(
                    field,
                    "ADDRESS_NOT_FOUND",
                    "must not be an IRI: send a postal address, or an object with streetAddress or latLng",
                );
                return None;
            }
            Some(AddressDraft {
                text,
                ..AddressDraft::default()
            })
        }
        proto::task_draft::Address::AddressDraft(draft) => {
            Some(address_object(field, draft, country, violations))
        }
    }
}

/// A structured address. `country` is that of telephone numbers in national form.
pub(crate) fn address_object(
    field: &str,
    draft: proto::AddressDraft,
    country: &str,
    violations: &mut Violations,
) -> AddressDraft {
    let mut text = |name: &str, text: Option<String>, limit| {
        checked_text(&format!("{field}.{name}"), &text?, limit, violations)
    };
    let has_point = draft.lat_lng.is_some();
    let street_address =
        text("street_address", draft.street_address.clone(), MAX_TEXT).map(|trimmed| {
            // Together with a point, the client's text is stored unchanged.
            draft
                .street_address
                .filter(|_| has_point)
                .unwrap_or(trimmed)
        });
    let mut address = AddressDraft {
        text: street_address.unwrap_or_default(),
        place_name: text("place_name", draft.place_name, MAX_NAME),
        contact_name: text("contact_name", draft.contact_name, MAX_NAME),
        description: text("description", draft.description, MAX_LONG_TEXT),
        postal_code: text("postal_code", draft.postal_code, MAX_NAME),
        locality: text("address_locality", draft.address_locality, MAX_NAME),
        ..AddressDraft::default()
    };
    let country_code = draft.address_country.unwrap_or_default();
    let country_code = visible(&country_code);
    if !country_code.trim().is_empty() {
        let parsed = country_code.trim().parse::<Country>();
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
        if point.latitude == 0.0 && point.longitude == 0.0 {
            violations.warn(
                format!("{field}.lat_lng"),
                "ZERO_POINT",
                "is latitude 0, longitude 0, often sent for an unknown location",
            );
        }
        address.lat_lng = violations.check(format!("{field}.lat_lng"), "INVALID_POINT", parsed);
    }
    address
}

/// The times of a task. `timeSlot` takes precedence over `before`. Blank counts as absent.
pub(crate) fn times(
    field: &str,
    draft: &proto::TaskDraft,
    context: &ParseContext<'_>,
    violations: &mut Violations,
) -> TaskTimes {
    let given = |text: &Option<String>| {
        let text = visible(text.as_deref()?);
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let (slot, before, after) = (
        given(&draft.time_slot),
        given(&draft.before),
        given(&draft.after),
    );
    let mut times = TaskTimes {
        is_end_requested: slot.is_some() || before.is_some(),
        ..TaskTimes::default()
    };
    if let Some(text) = slot {
        let parsed = window::parse(&text, context.now.time_zone());
        let field = format!("{field}.time_slot");
        times.slot = violations
            .check(&field, "INVALID_TIME_SLOT", parsed)
            .filter(|slot| {
                is_plausible(&field, slot.after, context.now, violations)
                    && is_plausible(&field, slot.before, context.now, violations)
            });
    } else if let Some(text) = before {
        times.before = instant(&format!("{field}.before"), &text, context, violations);
    }
    if let Some(text) = after {
        times.after = instant(&format!("{field}.after"), &text, context, violations);
    }
    times
}

pub(crate) fn details(
    field: &str,
    draft: proto::TaskDraft,
    violations: &mut Violations,
) -> TaskDetails {
    let comments = draft
        .comments
        .and_then(|text| {
            checked_text(
                &format!("{field}.comments"),
                &text,
                MAX_LONG_TEXT,
                violations,
            )
        })
        .unwrap_or_default();
    if let Some(weight) = draft.weight {
        let weight = limits::WEIGHT.check(weight);
        violations.check(format!("{field}.weight"), "OUT_OF_RANGE", weight);
    }
    TaskDetails {
        comments,
        weight: draft.weight,
        packages: packages(&format!("{field}.packages"), draft.packages, violations),
        tags: tags(&format!("{field}.tags"), draft.tags, violations),
        metadata: metadata(&format!("{field}.metadata"), draft.metadata, violations),
    }
}

pub(crate) fn required_name(field: &str, text: &str, violations: &mut Violations) -> String {
    let name = checked_text(field, text, MAX_NAME, violations);
    if name.is_none() {
        violations.add(field, "REQUIRED", "is required");
    }
    name.unwrap_or_default()
}

fn is_too_many(
    field: &str,
    count: usize,
    limit: usize,
    what: &str,
    violations: &mut Violations,
) -> bool {
    let is_too_many = count > limit;
    if is_too_many {
        let description = format!("must be at most {limit} {what}, not {count}");
        violations.add(field, "TOO_MANY", description);
    }
    is_too_many
}

fn packages(
    field: &str,
    packages: Vec<proto::Package>,
    violations: &mut Violations,
) -> Vec<Package> {
    if is_too_many(field, packages.len(), MAX_PACKAGES, "packages", violations) {
        return Vec::new();
    }
    let mut checked = Vec::with_capacity(packages.len());
    for (index, package) in packages.into_iter().enumerate() {
        let field = format!("{field}[{index}]");
        let quantity = limits::QUANTITY.check(package.quantity.into());
        violations.check(format!("{field}.quantity"), "OUT_OF_RANGE", quantity);
        let kind = visible(&package.r#type);
        let kind = required_name(&format!("{field}.type"), &kind, violations);
        checked.push(Package {
            kind,
            quantity: package.quantity,
        });
    }
    checked
}

fn tags(field: &str, tags: Vec<String>, violations: &mut Violations) -> Vec<String> {
    if is_too_many(field, tags.len(), MAX_TAGS, "tags", violations) {
        return Vec::new();
    }
    tags.into_iter()
        .enumerate()
        .filter_map(|(index, tag)| {
            checked_text(&format!("{field}[{index}]"), &tag, MAX_TAG, violations)
        })
        .collect()
}

pub(crate) fn metadata(
    field: &str,
    metadata: std::collections::HashMap<String, String>,
    violations: &mut Violations,
) -> BTreeMap<String, String> {
    if is_too_many(field, metadata.len(), MAX_METADATA, "members", violations) {
        return BTreeMap::new();
    }
    let metadata: BTreeMap<_, _> = metadata.into_iter().collect();
    for (key, value) in &metadata {
        let shown: String = key.chars().take(MAX_TAG).collect();
        let field = format!("{field}.{shown}");
        if key.chars().count() > MAX_TAG || key.contains(is_control) {
            violations.add(
                &field,
                "INVALID_KEY",
                format!(
                    "must have a key of at most {MAX_TAG} characters, none of them a control character"
                ),
            );
        }
        check_characters(&field, value, MAX_TEXT, violations);
    }
    metadata
}

fn instant(
    field: &str,
    text: &str,
    context: &ParseContext<'_>,
    violations: &mut Violations,
) -> Option<Timestamp> {
    let parsed = before::parse(text, context.now, context.date_order);
    violations
        .check(field, "INVALID_TIME", parsed)
        .filter(|instant| is_plausible(field, *instant, context.now, violations))
}

/// Rejects implausible times: before the year 2000 in the zone of `now`, the store's, or more than
/// ten years from now. Times in the past are accepted: a shop may create a delivery that has
/// already been made.
pub(crate) fn is_plausible(
    field: &str,
    instant: Timestamp,
    now: &Zoned,
    violations: &mut Violations,
) -> bool {
    let local = instant.to_zoned(now.time_zone().clone());
    let latest = now
        .checked_add(10.years())
        .map_or(Timestamp::MAX, |latest| latest.timestamp());
    let plausible = local.year() >= 2000 && instant <= latest;
    if !plausible {
        let zone = now.time_zone().iana_name().unwrap_or("the store's zone");
        violations.add(
            field,
            "ABSURD_TIME",
            format!("was read as {local}; must be from 2000-01-01 in {zone} to ten years from now"),
        );
    }
    plausible
}

/// The trimmed text; none if nothing of it is visible, or if it is invalid.
pub(crate) fn checked_text(
    field: &str,
    text: &str,
    limit: usize,
    violations: &mut Violations,
) -> Option<String> {
    let text = text.trim();
    let is_blank = visible(text).trim().is_empty();
    (!is_blank && check_characters(field, text, limit, violations)).then(|| text.to_owned())
}

/// Whether a text is short enough and has no control characters.
fn check_characters(field: &str, text: &str, limit: usize, violations: &mut Violations) -> bool {
    if text.chars().count() > limit {
        violations.add(
            field,
            "TOO_LONG",
            format!("must be at most {limit} characters"),
        );
        return false;
    }
    let forbidden = |c: char| is_control(c) && !matches!(c, '\n' | '\r' | '\t');
    if text.contains(forbidden) {
        violations.add(
            field,
            "CONTROL_CHARACTER",
            "must not contain control characters, nor those that reverse text",
        );
        return false;
    }
    true
}
