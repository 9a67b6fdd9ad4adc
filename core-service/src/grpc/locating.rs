//! Where tasks happen: from an address as a client gives it to one with a point.

use super::{Core, caller::Caller, drafts::AddressDraft};
use crate::{
    domain::{
        address::{Address, LatLng},
        id::AddressId,
        service_area::ServiceArea,
        store::Store,
        violation::Violations,
    },
    error::Error,
    geocoding::{Answer, Query},
    routing::great_circle_meters,
};

impl Core {
    /// The address given, or the client's default one, or the store's.
    pub(super) async fn pickup_address(
        &self,
        caller: &Caller,
        draft: Option<AddressDraft>,
        violations: &mut Violations,
    ) -> Result<Option<Address>, Error> {
        let store = caller.store()?;
        if let Some(draft) = draft {
            return self
                .locate_in_area("pickup.address", draft, store, violations)
                .await;
        }
        let default = caller
            .default_address
            .as_ref()
            .or(store.default_address.as_ref());
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
        store: &Store,
        draft: Option<AddressDraft>,
        violations: &mut Violations,
    ) -> Result<Option<Address>, Error> {
        if let Some(draft) = draft {
            return self
                .locate_in_area("dropoff.address", draft, store, violations)
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
        store: &Store,
        violations: &mut Violations,
    ) -> Result<Option<Address>, Error> {
        let is_point = draft.lat_lng.is_some();
        let located = self.locate(field, draft, Some(store), violations).await?;
        let Some(outside) = located
            .as_ref()
            .and_then(|address| outside(store, address.lat_lng))
        else {
            return Ok(located);
        };
        let field = if is_point {
            format!("{field}.lat_lng")
        } else {
            field.to_owned()
        };
        violations.add(field, "OUTSIDE_SERVICE_AREA", outside);
        Ok(None)
    }

    /// Gives an address its point: the client's, kept exactly with its text, or the geocoder's
    /// with the text as the geocoder writes it.
    pub(super) async fn locate(
        &self,
        field: &str,
        draft: AddressDraft,
        store: Option<&Store>,
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
            if let Some(swapped) = store.and_then(|store| likely_swapped(store, lat_lng)) {
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
            near: store.and_then(Store::center),
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

/// How far a store that says nothing delivers at most, for all that is known of it, in metres.
const AREA: u32 = 100_000;

/// Says so if a store does not deliver to a point.
fn outside(store: &Store, point: LatLng) -> Option<String> {
    let radius = store.service_area?.radius_meters();
    let meters = great_circle_meters(store.center()?, point);
    (meters > f64::from(radius)).then(|| {
        let kilometers = |meters: f64| (meters / 100.0).round() / 10.0;
        format!(
            "is {} km away: the store delivers within {} km",
            kilometers(meters),
            kilometers(f64::from(radius))
        )
    })
}

/// Says so if a point is outside the store's area and would not be the other way round.
fn likely_swapped(store: &Store, point: LatLng) -> Option<String> {
    let center = store.center()?;
    let radius = store.service_area.map_or(AREA, ServiceArea::radius_meters);
    let swapped = LatLng::new(point.longitude(), point.latitude()).ok()?;
    let is_near = |point| great_circle_meters(center, point) <= f64::from(radius);
    (!is_near(point) && is_near(swapped)).then(|| {
        let (first, second) = (point.latitude(), point.longitude());
        format!(
            "latitude comes first: [{first}, {second}] is far from the store, and [{second}, {first}] is near it; did you mean that?"
        )
    })
}
