//! Routes from an OSRM server: <https://project-osrm.org/docs/v5.24.0/api/>.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use domain::{
    address::LatLng,
    delivery::{DistanceSource, Route},
};
use serde::Deserialize;
use upstream::{Client, Limits, Monitor, Response};
use url::Url;

use super::Error;

/// A client of an OSRM server, with a cache.
pub(crate) struct Osrm {
    client: Client,
    /// `…/route/v1/<profile>/`
    base: Url,
    /// Routes by the coordinates of a request.
    cache: moka::sync::Cache<String, Route>,
}

/// Limit of a response; usual ones have some hundred bytes.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;
const CACHE_CAPACITY: u64 = 100_000;
/// Routes change with the map.
const TIME_TO_LIVE: Duration = Duration::from_hours(24);

impl Osrm {
    /// Creates a client. The path of the base URL is a prefix of all request paths.
    pub(crate) fn new(
        base_url: &Url,
        profile: &str,
        timeout: Duration,
        concurrency: usize,
    ) -> anyhow::Result<Self> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        ensure!(
            !profile.is_empty() && profile.chars().all(is_plain),
            "{profile:?} is not a profile: use letters, digits, - and _"
        );
        let mut base = base_url.clone();
        let is_http = matches!(base.scheme(), "http" | "https");
        let extended = base.path_segments_mut().map(|mut segments| {
            segments.pop_if_empty().extend(["route", "v1", profile, ""]);
        });
        ensure!(
            extended.is_ok() && is_http && base.query().is_none(),
            "{base_url} is not a URL of an OSRM server: use a URL such as http://127.0.0.1:5000"
        );
        base.set_fragment(None);
        let limits = Limits {
            timeout,
            concurrency,
            max_response_bytes: MAX_RESPONSE_BYTES,
        };
        Ok(Self {
            client: Client::new("osrm", limits).context("cannot set up TLS")?,
            base,
            cache: moka::sync::Cache::builder()
                .max_capacity(CACHE_CAPACITY)
                .time_to_live(TIME_TO_LIVE)
                .build(),
        })
    }

    pub(crate) fn monitor(&self) -> Monitor {
        self.client.monitor()
    }

    pub(crate) async fn route(&self, from: LatLng, to: LatLng) -> Result<Route, Error> {
        let coordinates = format!("{};{}", lng_lat(from), lng_lat(to));
        if let Some(route) = self.cache.get(&coordinates) {
            return Ok(route);
        }
        let mut url = self.base.clone();
        url.set_path(&format!("{}{coordinates}", url.path()));
        url.set_query(Some("overview=false"));
        let response = self.client.get(&url).await;
        let route = parse(&response.map_err(unavailable)?)?;
        self.cache.insert(coordinates, route);
        Ok(route)
    }
}

/// OSRM expects the longitude first, unlike the rest of this program. Five decimals are about one
/// metre.
fn lng_lat(point: LatLng) -> String {
    format!("{:.5},{:.5}", point.longitude(), point.latitude())
}

/// A response; it has a code at every HTTP status.
#[derive(Deserialize)]
struct Document {
    code: String,
    #[serde(default)]
    routes: Vec<RouteObject>,
}

#[derive(Deserialize)]
struct RouteObject {
    /// Metres.
    distance: f64,
    /// Seconds.
    duration: f64,
}

fn parse(response: &Response) -> Result<Route, Error> {
    let document: Document = serde_json::from_slice(&response.body)
        .map_err(|error| unavailable(format!("the router's response is malformed: {error}")))?;
    match document.code.as_str() {
        "Ok" if response.status.is_success() => {
            let first = document.routes.first();
            let valid = first.filter(|route| route.distance >= 0.0 && route.duration >= 0.0);
            let route = valid.ok_or_else(|| unavailable("the router's response has no route"))?;
            let (meters, seconds) = (route.distance, route.duration);
            Ok(Route::rounded(meters, seconds, DistanceSource::Osrm))
        }
        // `NoSegment`: one of the points is too far from any street.
        "NoRoute" | "NoSegment" => Err(Error::NoRoute),
        code => {
            let code: String = code.chars().take(40).collect();
            Err(unavailable(format!(
                "the router rejected the request: {code}"
            )))
        }
    }
}

fn unavailable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Unavailable(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use upstream::test_server::{Reply, TestServer};

    const OK: &str = r#"{"code":"Ok","routes":[{"legs":[{"steps":[],"distance":1886.3,"duration":260.6,"summary":"","weight":260.6}],"weight_name":"duration","weight":260.6,"distance":1886.3,"duration":260.6}],"waypoints":[{"hint":"","distance":4.2,"name":"Rue de Rivoli","location":[2.352,48.856]},{"hint":"","distance":2.1,"name":"","location":[2.355,48.855]}]}"#;

    fn points() -> [LatLng; 2] {
        [(48.856_61, 2.352_22), (-33.855_8, 151.2)]
            .map(|(latitude, longitude)| LatLng::new(latitude, longitude).unwrap())
    }

    fn osrm(service: &TestServer) -> Osrm {
        Osrm::new(&service.url, "bike", Duration::from_mins(1), 4).unwrap()
    }

    async fn route(osrm: &Osrm) -> Result<Route, Error> {
        let [from, to] = points();
        osrm.route(from, to).await
    }

    #[tokio::test]
    async fn a_route_is_requested_longitude_first_and_then_cached() {
        let service = TestServer::start(|_, _| Reply::Text(200, OK.to_owned())).await;
        let osrm = osrm(&service);
        let [from, to] = points();
        let nearby = LatLng::new(from.latitude() + 0.000_001, from.longitude()).unwrap();

        let routes = [
            osrm.route(from, to).await.unwrap(),
            osrm.route(nearby, to).await.unwrap(),
            osrm.route(to, from).await.unwrap(),
        ];

        let expected = Route {
            distance_meters: 1886,
            duration_seconds: 261,
            source: DistanceSource::Osrm,
        };
        assert_eq!(routes, [expected; 3]);
        assert_eq!(
            service.targets(),
            [
                "/route/v1/bike/2.35222,48.85661;151.20000,-33.85580?overview=false",
                "/route/v1/bike/151.20000,-33.85580;2.35222,48.85661?overview=false",
            ]
        );
    }

    #[tokio::test]
    async fn a_server_may_be_behind_a_path() {
        let service = TestServer::start(|_, _| Reply::Text(200, OK.to_owned())).await;
        for path in ["/maps/osrm", "/maps/osrm/"] {
            let base = service.url.join(path).unwrap();
            let osrm = Osrm::new(&base, "car", Duration::from_mins(1), 4).unwrap();
            route(&osrm).await.unwrap();
        }

        for target in service.targets() {
            assert!(
                target.starts_with("/maps/osrm/route/v1/car/2.3"),
                "{target}"
            );
        }
    }

    /// Covers all documented error codes, and malformed responses.
    #[tokio::test]
    async fn an_error_response_means_no_route_or_unavailable() {
        let error_response = |code: &str| {
            let body = format!(r#"{{"code":"{code}","message":"…"}}"#);
            Reply::Text(400, body)
        };
        for (name, is_no_route) in [
            ("NoRoute", true),
            ("NoSegment", true),
            ("InvalidUrl", false),
            ("InvalidService", false),
            ("InvalidVersion", false),
            ("InvalidOptions", false),
            ("InvalidQuery", false),
            ("InvalidValue", false),
            ("TooBig", false),
            ("NotImplemented", false),
            ("Ok", false),
        ] {
            let service = TestServer::start(move |_, _| error_response(name)).await;
            let error = route(&osrm(&service)).await.unwrap_err();
            assert_eq!(
                matches!(error, Error::NoRoute),
                is_no_route,
                "{name}: {error}"
            );
        }
        for (name, body) in [
            ("no route", r#"{"code":"Ok","routes":[]}"#),
            ("no routes", r#"{"code":"Ok"}"#),
            (
                "a backward route",
                r#"{"code":"Ok","routes":[{"distance":-1,"duration":5}]}"#,
            ),
            (
                "an endless route",
                r#"{"code":"Ok","routes":[{"distance":1e999,"duration":5}]}"#,
            ),
            ("no duration", r#"{"code":"Ok","routes":[{"distance":1}]}"#),
            ("no code", r#"{"routes":[{"distance":1,"duration":1}]}"#),
            ("garbage", "<html>Hello</html>"),
            ("nothing", ""),
        ] {
            let service = TestServer::start(|_, _| Reply::Text(200, body.to_owned())).await;
            let error = route(&osrm(&service)).await.unwrap_err();
            assert!(matches!(error, Error::Unavailable(_)), "{name}: {error}");
        }
        for status in [301, 404, 429, 500, 502, 503] {
            let service = TestServer::start(move |_, _| Reply::Text(status, String::new())).await;
            let error = route(&osrm(&service)).await.unwrap_err();
            assert!(matches!(error, Error::Unavailable(_)), "{status}: {error}");
        }
    }

    #[tokio::test]
    async fn a_router_that_responds_late_or_endlessly_is_unavailable() {
        for reply in [|| Reply::Hang, || Reply::Endless, || Reply::Close] {
            let service = TestServer::start(move |_, _| reply()).await;
            let timeout = Duration::from_secs(2);
            let osrm = Osrm::new(&service.url, "bike", timeout, 4).unwrap();

            let error = route(&osrm).await.unwrap_err();

            assert!(matches!(error, Error::Unavailable(_)), "{error}");
        }
    }

    #[tokio::test]
    async fn a_failing_router_opens_the_circuit_and_cached_routes_remain() {
        let service = TestServer::start(|_, before| match before {
            0 => Reply::Text(200, OK.to_owned()),
            _ => Reply::Text(500, String::new()),
        })
        .await;
        let osrm = osrm(&service);
        let [from, to] = points();
        osrm.route(from, to).await.unwrap();

        for _ in 0..20 {
            let error = osrm.route(to, from).await.unwrap_err();
            assert!(matches!(error, Error::Unavailable(_)), "{error}");
        }

        assert_eq!(service.targets().len(), 1 + 5);
        assert!(osrm.route(from, to).await.is_ok());
    }

    #[tokio::test]
    async fn concurrent_requests_are_limited() {
        let service = TestServer::start(|_, _| Reply::Hang).await;
        let osrm = Osrm::new(&service.url, "bike", Duration::from_secs(1), 2).unwrap();
        let to = |longitude| LatLng::new(48.0, longitude).unwrap();
        let [from, _] = points();

        let requests = [1.0, 2.0, 3.0, 4.0, 5.0].map(|longitude| osrm.route(from, to(longitude)));
        let results = futures_util::future::join_all(requests).await;

        assert!(results.iter().all(Result::is_err), "{results:?}");
        assert_eq!(service.targets().len(), 2);
    }

    #[test]
    fn an_invalid_url_or_profile_is_rejected() {
        let new = |url: &str, profile: &str| {
            Osrm::new(&url.parse().unwrap(), profile, Duration::from_secs(1), 1).is_ok()
        };

        assert!(new("https://router.example/osrm/", "foot_2-b"));
        for url in [
            "mailto:router@example",
            "file:///srv",
            "http://router.example/?q=1",
        ] {
            assert!(!new(url, "bike"), "{url}");
        }
        for profile in ["", "a/b", "a b", "..", "é"] {
            assert!(!new("http://router.example", profile), "{profile}");
        }
    }
}
