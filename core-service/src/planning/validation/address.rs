//! Validates requested addresses.

use domain::{
    address::{Address, LatLng},
    id::AddressId,
    store::Country,
    telephone,
    violation::Violations,
    visible::visible,
};
use proto::{
    iri,
    limits::{MAX_LONG_TEXT, MAX_NAME, MAX_TEXT},
};

use super::checked_text;

/// A validated address, not geocoded yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AddressDraft {
    pub(crate) text: String,
    pub(crate) lat_lng: Option<LatLng>,
    pub(crate) place_name: Option<String>,
    pub(crate) contact_name: Option<String>,
    pub(crate) telephone: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) postal_code: Option<String>,
    pub(crate) locality: Option<String>,
    pub(crate) country: Option<String>,
}

impl AddressDraft {
    /// Whether it has a text or a point.
    pub(crate) fn has_place(&self) -> bool {
        !self.text.is_empty() || self.lat_lng.is_some()
    }

    /// The length of all texts in bytes.
    pub(crate) fn text_bytes(&self) -> usize {
        let postal = [&self.postal_code, &self.locality, &self.country];
        let optional = self.contact().into_iter().chain(postal).flatten();
        self.text.len() + optional.map(String::len).sum::<usize>()
    }

    /// The fields that do not say where it is.
    fn contact(&self) -> [&Option<String>; 4] {
        [
            &self.place_name,
            &self.contact_name,
            &self.telephone,
            &self.description,
        ]
    }

    /// Whether it has a part of a postal address besides the text.
    pub(crate) fn has_postal_part(&self) -> bool {
        self.postal_code.is_some() || self.locality.is_some() || self.country.is_some()
    }

    /// The address with the contact of this draft, if it has one.
    pub(crate) fn contact_at(self, address: Address) -> Address {
        if self.contact().into_iter().all(Option::is_none) {
            return address;
        }
        Address {
            // Not the same resource: its fields differ.
            id: AddressId::new(),
            place_name: self.place_name.or(address.place_name),
            contact_name: self.contact_name.or(address.contact_name),
            telephone: self.telephone.or(address.telephone),
            description: self.description.or(address.description),
            ..address
        }
    }
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
