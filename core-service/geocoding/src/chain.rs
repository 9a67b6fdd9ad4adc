//! Several geocoders, asked in the operator's order.

use futures_util::{FutureExt, future::BoxFuture};

use super::{Answer, Error, Geocoder, Query, Unclear};

/// Asks the next where one has not found the place.
pub struct Chain(pub Vec<Box<dyn Geocoder>>);

impl Geocoder for Chain {
    fn geocode<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Answer, Error>> {
        self.ask(query).boxed()
    }
}

impl Chain {
    /// What the first that finds the place says. If none does, what the first says that knows a
    /// part of it; a place that is not known is an answer only if all could be asked, since the
    /// one that is down may know it.
    async fn ask(&self, query: &Query) -> Result<Answer, Error> {
        let mut unclear: Option<Unclear> = None;
        let mut failure = None;
        for geocoder in &self.0 {
            match geocoder.geocode(query).await {
                Ok(Answer::Found(found)) => return Ok(Answer::Found(found)),
                Ok(Answer::Unclear(known)) => {
                    unclear.get_or_insert(known);
                }
                Ok(Answer::NotFound) => {}
                Err(error) => {
                    let cause = &error as &(dyn std::error::Error + 'static);
                    tracing::warn!(error = cause, "a geocoder gives no answer");
                    failure = Some(error);
                }
            }
        }
        match (unclear, failure) {
            (Some(unclear), _) => Ok(Answer::Unclear(unclear)),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(Answer::NotFound),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::address::LatLng;

    use crate::{Found, Missing, Precision};

    /// Always answers the same; `None` is down.
    struct Fixed(Option<Answer>);

    impl Geocoder for Fixed {
        fn geocode<'a>(&'a self, _: &'a Query) -> BoxFuture<'a, Result<Answer, Error>> {
            let down = || Error::Unavailable("down".into());
            std::future::ready(self.0.clone().ok_or_else(down)).boxed()
        }
    }

    fn place(name: &str) -> Found {
        Found {
            formatted: name.to_owned(),
            postal_code: None,
            locality: None,
            country: None,
            lat_lng: LatLng::new(48.0, 2.0).unwrap(),
            precision: Precision::House,
            confidence: 1.0,
            reasons: Vec::new(),
        }
    }

    #[tokio::test]
    async fn the_first_that_finds_the_place_is_believed() {
        let found = |name| Some(Answer::Found(place(name)));
        let unclear = |name| {
            let missing = Missing::HouseNumber(None);
            Some(Answer::Unclear(Unclear::new(missing, vec![place(name)])))
        };
        let nothing = Some(Answer::NotFound);
        let down = None;

        for (geocoders, expected) in [
            (vec![found("a"), found("b")], found("a")),
            (vec![nothing.clone(), found("b")], found("b")),
            (vec![unclear("a"), found("b")], found("b")),
            (vec![down.clone(), found("b")], found("b")),
            (vec![unclear("a"), unclear("b")], unclear("a")),
            (vec![unclear("a"), down.clone()], unclear("a")),
            (vec![nothing.clone(), nothing.clone()], nothing.clone()),
            (vec![nothing.clone(), down.clone()], down.clone()),
            (vec![down.clone(), nothing.clone()], down.clone()),
            (vec![down.clone(), down.clone()], down),
        ] {
            let case = format!("{geocoders:?}");
            let chain = geocoders
                .into_iter()
                .map(|answer| Box::new(Fixed(answer)) as Box<dyn Geocoder>);
            let answer = Chain(chain.collect()).ask(&Query::new("x")).await;
            assert_eq!(answer.ok(), expected, "{case}");
        }
    }
}
