//! The straight line where a router gives no answer: visibly, by the route's source.

use domain::{address::LatLng, delivery::Route};
use futures_util::{FutureExt, future::BoxFuture};

use super::{Error, Router, StraightLine};

/// A router, and the straight line in its absence.
pub struct WithFallback<R> {
    pub router: R,
    pub fallback: StraightLine,
}

impl<R: Router> Router for WithFallback<R> {
    fn route(&self, from: LatLng, to: LatLng) -> BoxFuture<'_, Result<Route, Error>> {
        async move {
            match self.router.route(from, to).await {
                Err(error @ Error::Unavailable(_)) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "a way is estimated"
                    );
                    self.fallback.route(from, to).await
                }
                // That there is no way is an answer.
                answer => answer,
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::delivery::DistanceSource;

    /// Has always the same answer.
    struct Fixed(fn() -> Result<Route, Error>);

    impl Router for Fixed {
        fn route(&self, _: LatLng, _: LatLng) -> BoxFuture<'_, Result<Route, Error>> {
            std::future::ready((self.0)()).boxed()
        }
    }

    async fn route(answer: fn() -> Result<Route, Error>) -> Result<Route, Error> {
        let [from, to] = [48.0, 48.1].map(|latitude| LatLng::new(latitude, 2.0).unwrap());
        let router = WithFallback {
            router: Fixed(answer),
            fallback: StraightLine::default(),
        };
        router.route(from, to).await
    }

    #[tokio::test]
    async fn only_a_router_without_an_answer_is_stood_in_for() {
        let known = || {
            Ok(Route {
                meters: 1,
                seconds: 1,
                source: DistanceSource::Osrm,
            })
        };
        let silent = || Err(Error::Unavailable("down".into()));
        let certain = || Err(Error::NoRoute);

        assert_eq!(route(known).await.unwrap(), known().unwrap());
        assert_eq!(
            route(silent).await.unwrap().source,
            DistanceSource::StraightLine
        );
        assert!(matches!(route(certain).await, Err(Error::NoRoute)));
    }
}
