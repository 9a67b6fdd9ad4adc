//! Requested addresses: geocoded, and checked against the store's coverage.

use domain::{
    address::{Address, LatLng},
    coverage::Coverage,
    id::{AddressId, StoreId},
    store::Store,
    telephone,
    violation::Violations,
    visible::visible,
};
use geocoding::{GeocodeMatch, GeocodeResult, Query};

use super::{planner::Planner, validation};
use crate::{auth::caller::Caller, error::Error};

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

/// The store that an address is for, and where it delivers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreArea<'a> {
    /// `None`: for no store.
    pub(crate) id: Option<StoreId>,
    pub(crate) coverage: &'a Coverage,
}

impl Planner {
    /// The requested address, or else the default address of the client or of the store, with the
    /// requested contact.
    pub(crate) async fn pickup_address(
        &self,
        caller: &Caller,
        store: StoreArea<'_>,
        draft: Option<AddressDraft>,
        violations: &mut Violations,
    ) -> Result<Option<Address>, Error> {
        let draft = draft.unwrap_or_default();
        if draft.has_place() {
            return self
                .geocode_in_area("pickup.address", draft, store, violations)
                .await;
        }
        if draft.has_postal_part() && !has_wrong_place("pickup.address", violations) {
            // The draft is for another place than the default address, but incomplete.
            violations.add(
                "pickup.address.street_address",
                "REQUIRED",
                "is required with postalCode, addressLocality or addressCountry",
            );
            return Ok(None);
        }
        let default = caller
            .default_address
            .as_ref()
            .or(caller.store()?.default_address.as_ref());
        if default.is_none() && !has_wrong_place("pickup.address", violations) {
            violations.add(
                "pickup.address",
                "REQUIRED",
                "is required: neither the client nor its store has a default address",
            );
        }
        Ok(default.map(|address| draft.contact_at(address.clone())))
    }

    pub(crate) async fn dropoff_address(
        &self,
        store: StoreArea<'_>,
        draft: Option<AddressDraft>,
        violations: &mut Violations,
    ) -> Result<Option<Address>, Error> {
        if let Some(draft) = draft.filter(AddressDraft::has_place) {
            return self
                .geocode_in_area("dropoff.address", draft, store, violations)
                .await;
        }
        if !has_wrong_place("dropoff.address", violations) {
            violations.add(
                "dropoff.address",
                "REQUIRED",
                "is required: a postal address, or an object with streetAddress or latLng",
            );
        }
        Ok(None)
    }

    /// Like [`Self::geocode`], with a violation if the store does not deliver there.
    async fn geocode_in_area(
        &self,
        field: &str,
        draft: AddressDraft,
        store: StoreArea<'_>,
        violations: &mut Violations,
    ) -> Result<Option<Address>, Error> {
        let is_point = draft.lat_lng.is_some();
        let Some(address) = self.geocode(field, draft, store, violations).await? else {
            return Ok(None);
        };
        let point = address.lat_lng;
        let (field, rejection) = if is_point {
            (format!("{field}.lat_lng"), store.coverage.rejection(point))
        } else {
            let rejection = store
                .coverage
                .rejection_of_address(&address.street_address, point);
            (field.to_owned(), rejection)
        };
        let Some(rejection) = rejection else {
            return Ok(Some(address));
        };
        violations.add(field, "OUTSIDE_SERVICE_AREA", rejection);
        Ok(None)
    }

    /// Geocodes the default address of a store or a client.
    pub(crate) async fn default_address(
        &self,
        draft: proto::AddressDraft,
        store: Option<&Store>,
        violations: &mut Violations,
    ) -> Result<Option<Address>, Error> {
        const FIELD: &str = "default_address";
        let store_country = store.map(|store| &store.country);
        let telephone_country = telephone::national_country(store_country, &self.country).as_str();
        let draft = validation::address_object(FIELD, draft, telephone_country, violations);
        if draft.has_place() {
            let coverage = match store {
                Some(store) => self.definitions.current_coverage(store).await?,
                None => Coverage::UNKNOWN,
            };
            let area = StoreArea {
                id: store.map(|store| store.id),
                coverage: &coverage,
            };
            return self.geocode(FIELD, draft, area, violations).await;
        }
        if !has_wrong_place(FIELD, violations) {
            violations.add(FIELD, "REQUIRED", "must have a text or a point");
        }
        Ok(None)
    }

    /// Adds a point to an address: the client's, with the text unchanged, or the geocoder's, with
    /// the text as the geocoder formats it.
    async fn geocode(
        &self,
        field: &str,
        draft: AddressDraft,
        store: StoreArea<'_>,
        violations: &mut Violations,
    ) -> Result<Option<Address>, Error> {
        let address = |lat_lng| Address {
            id: AddressId::new(),
            street_address: draft.text.clone(),
            lat_lng,
            place_name: draft.place_name.clone(),
            contact_name: draft.contact_name.clone(),
            telephone: draft.telephone.clone(),
            description: draft.description.clone(),
            postal_code: draft.postal_code.clone(),
            locality: draft.locality.clone(),
            country: draft.country.clone(),
        };
        if let Some(lat_lng) = draft.lat_lng {
            if let Some(swapped) = store.coverage.swapped_coordinates(lat_lng) {
                violations.add(format!("{field}.lat_lng"), "INVALID_POINT", swapped);
                return Ok(None);
            }
            return Ok(Some(address(lat_lng)));
        }
        if violations.has_violation_in(&format!("{field}.lat_lng")) {
            return Ok(None);
        }
        let mut text = visible(&draft.text).into_owned();
        for part in [&draft.postal_code, &draft.locality].into_iter().flatten() {
            text = format!("{text}, {}", visible(part));
        }
        let country = draft.country.clone();
        match self.search_address(text.clone(), country, store).await? {
            GeocodeResult::Found(found) => {
                if let Some(ambiguity) = found.ambiguity() {
                    violations.warn(field, "VAGUE_ADDRESS", ambiguity);
                }
                if let Some((given, other)) = other_postcode(&text, &found) {
                    violations.warn(
                        field,
                        "OTHER_POSTCODE",
                        format!("was found with the postcode {other}, not {given}"),
                    );
                }
                Ok(Some(Address {
                    street_address: found.formatted,
                    postal_code: found.postal_code,
                    locality: found.locality,
                    country: found.country,
                    ..address(found.lat_lng)
                }))
            }
            GeocodeResult::Partial(unclear) => {
                violations.add(field, "ADDRESS_UNCLEAR", unclear.to_string());
                Ok(None)
            }
            GeocodeResult::NotFound => {
                violations.add(
                    field,
                    "ADDRESS_NOT_FOUND",
                    format!(
                        "found nothing for {text:?}: give house number, street, postcode and town, or latLng"
                    ),
                );
                Ok(None)
            }
        }
    }

    /// Geocodes a text with the required precision; prefers results near the store.
    pub(crate) async fn search_address(
        &self,
        text: String,
        country: Option<String>,
        store: StoreArea<'_>,
    ) -> Result<GeocodeResult, Error> {
        let query = Query {
            country,
            near: store.coverage.search_center(),
            store_id: store.id,
            required: self.required_precision,
            ..Query::new(text)
        };
        Ok(self.geocoder.geocode(&query).await?)
    }
}

/// Whether an address or its place has a violation already. Those of its contact do not count.
fn has_wrong_place(field: &str, violations: &Violations) -> bool {
    let is_address = violations.iter().any(|found| found.field == field);
    is_address
        || ["street_address", "lat_lng"]
            .iter()
            .any(|part| violations.has_violation_in(&format!("{field}.{part}")))
}

/// The postcode in a text, and that of the address found, if they differ. Only of postcodes that are
/// one number.
fn other_postcode<'t>(text: &'t str, found: &'t GeocodeMatch) -> Option<(&'t str, &'t str)> {
    let other = found.postal_code.as_deref()?;
    let is_like_it =
        |word: &&str| word.len() == other.len() && word.bytes().all(|byte| byte.is_ascii_digit());
    let given = text
        .rsplit(|c: char| !c.is_alphanumeric())
        .find(is_like_it)?;
    // A house number may have as many digits.
    let is_known = text.contains(other) || found.formatted.contains(given);
    (is_like_it(&other) && !is_known).then_some((given, other))
}

#[cfg(test)]
mod tests {
    use domain::address::LatLng;
    use geocoding::Precision;

    use super::*;

    #[test]
    fn another_postcode_than_the_given_one_is_noticed() {
        for (text, formatted, code, expected) in [
            (
                "48 Rue de Rivoli, 75001 Paris",
                "48 Rue de Rivoli, 75004 Paris",
                "75004",
                Some("75001"),
            ),
            (
                "48 Rue de Rivoli, 75004 Paris",
                "48 Rue de Rivoli, 75004 Paris",
                "75004",
                None,
            ),
            (
                "48 Rue de Rivoli, Paris",
                "48 Rue de Rivoli, 75004 Paris",
                "75004",
                None,
            ),
            (
                "12345 Main Street",
                "12345 Main Street, Reno 89501",
                "89501",
                None,
            ),
            (
                "12345 Main Street, 89502",
                "12345 Main Street, Reno 89501",
                "89501",
                Some("89502"),
            ),
            (
                "1 High Street, SW1A 1AA",
                "1 High Street, SW1A 2AA",
                "SW1A 2AA",
                None,
            ),
        ] {
            let found = GeocodeMatch {
                formatted: formatted.to_owned(),
                postal_code: Some(code.to_owned()),
                locality: None,
                country: None,
                lat_lng: LatLng::new(0.0, 0.0).unwrap(),
                precision: Precision::House,
                confidence: 1.0,
                is_in_nearest_town: false,
                reasons: Vec::new(),
            };
            let given = other_postcode(text, &found).map(|(given, _)| given);
            assert_eq!(given, expected, "{text}");
        }
    }
}
