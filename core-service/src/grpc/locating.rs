//! Where tasks happen: from an address as a client gives it to one with a point.

use domain::{address::Address, id::AddressId, violation::Violations};
use geocoding::{Answer, Query};

use super::{Core, caller::Caller, drafts::AddressDraft, reach::Reach};

use crate::error::Error;

impl Core {
    /// The address given, or the client's default one, or the store's.
    pub(super) async fn pickup_address(
        &self,
        caller: &Caller,
        reach: &Reach,
        draft: Option<AddressDraft>,
        violations: &mut Violations,
    ) -> Result<Option<Address>, Error> {
        if let Some(draft) = draft {
            return self
                .locate_in_area("pickup.address", draft, reach, violations)
                .await;
        }
        let default = caller
            .default_address
            .as_ref()
            .or(caller.store()?.default_address.as_ref());
        if default.is_none() && !violations.is_at_or_below("pickup.address") {
            violations.add(
                "pickup.address",
                "REQUIRED",
                "is required: neither the client nor its store has a default address",
            );
        }
        Ok(default.cloned())
    }

    pub(super) async fn dropoff_address(
        &self,
        reach: &Reach,
        draft: Option<AddressDraft>,
        violations: &mut Violations,
    ) -> Result<Option<Address>, Error> {
        if let Some(draft) = draft {
            return self
                .locate_in_area("dropoff.address", draft, reach, violations)
                .await;
        }
        if !violations.is_at_or_below("dropoff.address") {
            violations.add(
                "dropoff.address",
                "REQUIRED",
                "is required: a postal address, or an object with streetAddress or latLng",
            );
        }
        Ok(None)
    }

    /// As [`Core::locate`], where the store delivers.
    async fn locate_in_area(
        &self,
        field: &str,
        draft: AddressDraft,
        reach: &Reach,
        violations: &mut Violations,
    ) -> Result<Option<Address>, Error> {
        let is_point = draft.lat_lng.is_some();
        let Some(address) = self.locate(field, draft, reach, violations).await? else {
            return Ok(None);
        };
        let point = address.lat_lng;
        let (field, refusal) = if is_point {
            (format!("{field}.lat_lng"), reach.refusal(point))
        } else {
            let refusal = reach.refusal_of(&address.street_address, point);
            (field.to_owned(), refusal)
        };
        let Some(refusal) = refusal else {
            return Ok(Some(address));
        };
        violations.add(field, "OUTSIDE_SERVICE_AREA", refusal);
        Ok(None)
    }

    /// Gives an address its point: the client's, kept exactly with its text, or the geocoder's
    /// with the text as the geocoder writes it.
    pub(super) async fn locate(
        &self,
        field: &str,
        draft: AddressDraft,
        reach: &Reach,
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
            if let Some(swapped) = reach.likely_swapped(lat_lng) {
                violations.add(format!("{field}.lat_lng"), "INVALID_POINT", swapped);
                return Ok(None);
            }
            return Ok(Some(address(lat_lng)));
        }
        if violations.is_at_or_below(&format!("{field}.lat_lng")) {
            return Ok(None);
        }
        let parts = [
            Some(&draft.text),
            draft.postal_code.as_ref(),
            draft.locality.as_ref(),
        ];
        let query = Query {
            country: draft.country.clone(),
            near: reach.near(),
            demand: self.config.geocoding.address_precision,
            ..Query::new(
                parts
                    .into_iter()
                    .flatten()
                    .cloned()
                    .collect::<Vec<_>>()
                    .join(", "),
            )
        };
        match self.geocoder.geocode(&query).await? {
            Answer::Found(found) => Ok(Some(Address {
                street_address: found.formatted,
                postal_code: found.postal_code,
                locality: found.locality,
                country: found.country,
                ..address(found.lat_lng)
            })),
            Answer::Unclear(unclear) => {
                violations.add(field, "ADDRESS_UNCLEAR", unclear.to_string());
                Ok(None)
            }
            Answer::NotFound => {
                violations.add(
                    field,
                    "ADDRESS_NOT_FOUND",
                    format!(
                        "found nothing for {:?}: give house number, street, postcode and town, or latLng",
                        query.text
                    ),
                );
                Ok(None)
            }
        }
    }
}
