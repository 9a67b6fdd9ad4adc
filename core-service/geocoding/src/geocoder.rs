//! The interface of all geocoders, and a chain of several in the configured order.

use domain::{address::LatLng, id::StoreId};
use futures_util::future::BoxFuture;

use crate::{GeocodeResult, PartialMatch, Precision};

/// Resolves addresses to points.
pub trait Geocoder: Send + Sync {
    /// Looks up an address. An unknown address is a result, not an error.
    fn geocode<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<GeocodeResult, Error>>;
}

/// An address to look up.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Free text.
    pub text: String,
    /// ISO 3166-1 alpha-2; limits the search to one country.
    pub country: Option<String>,
    /// Prefers the nearest of several towns with the same street.
    pub near: Option<LatLng>,
    /// The lowest precision that is acceptable.
    pub required: Precision,
    /// The store of the request: stores share the capacity of an external geocoder. The result does not
    /// depend on it.
    pub store_id: Option<StoreId>,
}

impl Query {
    /// A query for a house in any country.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            country: None,
            near: None,
            required: Precision::Interpolated,
            store_id: None,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A later retry may succeed.
    #[error("no geocoder is available")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Tries the next geocoder if one does not find the address or is not available.
pub struct Chain(pub Vec<Box<dyn Geocoder>>);

impl Chain {
    /// Returns the first found address, otherwise the first partial match. An address is reported
    /// as not found only if every geocoder was available.
    pub async fn geocode(&self, query: &Query) -> Result<GeocodeResult, Error> {
        let mut partial: Option<PartialMatch> = None;
        let mut failure = None;
        for geocoder in &self.0 {
            match geocoder.geocode(query).await {
                Ok(GeocodeResult::Found(found)) => return Ok(GeocodeResult::Found(found)),
                Ok(GeocodeResult::Partial(found)) => {
                    partial.get_or_insert(found);
                }
                Ok(GeocodeResult::NotFound) => {}
                Err(error) => {
                    let cause = &error as &(dyn std::error::Error + 'static);
                    tracing::warn!(error = cause, "geocoder unavailable, trying the next one");
                    failure = Some(error);
                }
            }
        }
        match (partial, failure) {
            (Some(partial), _) => Ok(GeocodeResult::Partial(partial)),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(GeocodeResult::NotFound),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::address::LatLng;
    use futures_util::{FutureExt as _, future::BoxFuture};

    use crate::{GeocodeMatch, Mismatch, Precision};

    /// Always returns the same result; fails with `None`.
    struct Fixed(Option<GeocodeResult>);

    impl Geocoder for Fixed {
        fn geocode<'a>(&'a self, _: &'a Query) -> BoxFuture<'a, Result<GeocodeResult, Error>> {
            let down = || Error::Unavailable("down".into());
            std::future::ready(self.0.clone().ok_or_else(down)).boxed()
        }
    }

    fn place(name: &str) -> GeocodeMatch {
        GeocodeMatch {
            formatted: name.to_owned(),
            postal_code: None,
            locality: None,
            country: None,
            lat_lng: LatLng::new(48.0, 2.0).unwrap(),
            precision: Precision::House,
            confidence: 1.0,
            is_in_nearest_town: false,
            reasons: Vec::new(),
        }
    }

    #[tokio::test]
    async fn the_first_found_address_is_returned_otherwise_the_first_partial_match() {
        let found = |name| Some(GeocodeResult::Found(place(name)));
        let partial = |name| {
            let mismatch = Mismatch::HouseNumber(None);
            Some(GeocodeResult::Partial(PartialMatch::new(
                mismatch,
                vec![place(name)],
            )))
        };
        let nothing = Some(GeocodeResult::NotFound);
        let down = None;

        for (geocoders, expected) in [
            (vec![found("a"), found("b")], found("a")),
            (vec![nothing.clone(), found("b")], found("b")),
            (vec![partial("a"), found("b")], found("b")),
            (vec![down.clone(), found("b")], found("b")),
            (vec![partial("a"), partial("b")], partial("a")),
            (vec![partial("a"), down.clone()], partial("a")),
            (vec![nothing.clone(), nothing.clone()], nothing.clone()),
            (vec![nothing.clone(), down.clone()], down.clone()),
            (vec![down.clone(), nothing.clone()], down.clone()),
            (vec![down.clone(), down.clone()], down),
        ] {
            let case = format!("{geocoders:?}");
            let chain = geocoders
                .into_iter()
                .map(|result| Box::new(Fixed(result)) as Box<dyn Geocoder>);
            let result = Chain(chain.collect()).geocode(&Query::new("x")).await;
            assert_eq!(result.ok(), expected, "{case}");
        }
    }
}
