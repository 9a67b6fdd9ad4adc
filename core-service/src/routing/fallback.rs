//! Falls back to the straight line while a router is unavailable. The source of a route tells which
//! one was used.

use domain::{address::LatLng, delivery::Route};
use futures_util::{FutureExt, future::BoxFuture};

use super::{Error, Router, StraightLine};

/// A router with the straight line as its fallback.
pub(crate) struct WithFallback<R>(pub(crate) R);

impl<R: Router> Router for WithFallback<R> {
    fn route(&self, from: LatLng, to: LatLng) -> BoxFuture<'_, Result<Route, Error>> {
        async move {
            match self.0.route(from, to).await {
                Err(error @ Error::Unavailable(_)) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "router unavailable, estimating the route"
                    );
                    Ok(StraightLine::estimate(from, to))
                }
                // `NoRoute` is a valid result.
                result => result,
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::delivery::DistanceSource;

    /// Always returns the same result.
    struct Fixed(fn() -> Result<Route, Error>);

    impl Router for Fixed {
        fn route(&self, _: LatLng, _: LatLng) -> BoxFuture<'_, Result<Route, Error>> {
            std::future::ready((self.0)()).boxed()
        }
    }

    async fn route(result: fn() -> Result<Route, Error>) -> Result<Route, Error> {
        let [from, to] = [48.0, 48.1].map(|latitude| LatLng::new(latitude, 2.0).unwrap());
        WithFallback(Fixed(result)).route(from, to).await
    }

    #[tokio::test]
    async fn the_fallback_replaces_only_an_unavailable_router() {
        let found = || {
            Ok(Route {
                distance_meters: 1,
                duration_seconds: 1,
                source: DistanceSource::Osrm,
            })
        };
        let unavailable = || Err(Error::Unavailable("down".into()));
        let no_route = || Err(Error::NoRoute);

        assert_eq!(route(found).await.unwrap(), found().unwrap());
        assert_eq!(
            route(unavailable).await.unwrap().source,
            DistanceSource::StraightLine
        );
        assert!(matches!(route(no_route).await, Err(Error::NoRoute)));
    }
}
