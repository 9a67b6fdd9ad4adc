//! The way as an OSRM server knows it: <https://project-osrm.org/docs/v5.24.0/api/>.

use std::time::Duration;

use domain::{
    address::LatLng,
    delivery::{DistanceSource, Route},
};
use futures_util::{FutureExt, future::BoxFuture};
use serde::Deserialize;
use upstream::{Answer, Client, Limits};
use url::Url;

use super::{Error, Router, whole};

/// Asks an OSRM server, and remembers what it said.
pub struct Osrm {
    client: Client,
    /// `…/route/v1/<profile>/`
    base: Url,
    known: moka::sync::Cache<[Rounded; 2], Route>,
}

/// A point in hundred-thousandths of a degree, about a metre: no way depends on less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Rounded {
    latitude: i32,
    longitude: i32,
}

/// An answer to one question has some hundred bytes.
const LARGEST_ANSWER: usize = 64 * 1024;
/// How many ways are remembered.
const KEPT: u64 = 100_000;
/// Maps change, and so do ways.
const REMEMBERED: Duration = Duration::from_hours(24);
const PER_DEGREE: f64 = 100_000.0;

/// Why a server's answer is none.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("the router's answer makes no sense")]
    Unreadable(#[source] serde_json::Error),
    #[error("the router's answer has no route")]
    NoRoutes,
    #[error("the router refuses the question: {code}")]
    Code { code: String },
}

#[derive(Debug, thiserror::Error)]
pub enum OsrmError {
    #[error("{0} is no address of an OSRM server: give one such as http://127.0.0.1:5000")]
    Url(Url),
    #[error("{0:?} is no profile: letters, digits, - and _")]
    Profile(String),
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
}

impl Osrm {
    /// A server by its base address, whose every path begins with the address's own.
    pub fn new(
        base_url: &Url,
        profile: &str,
        deadline: Duration,
        in_flight: usize,
    ) -> Result<Self, OsrmError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if profile.is_empty() || !profile.chars().all(is_plain) {
            return Err(OsrmError::Profile(profile.to_owned()));
        }
        let mut base = base_url.clone();
        let is_http = matches!(base.scheme(), "http" | "https");
        let extended = base.path_segments_mut().map(|mut segments| {
            segments.pop_if_empty().extend(["route", "v1", profile, ""]);
        });
        if extended.is_err() || !is_http || base.query().is_some() {
            return Err(OsrmError::Url(base_url.clone()));
        }
        base.set_fragment(None);
        let limits = Limits {
            deadline,
            in_flight,
            largest_answer: LARGEST_ANSWER,
        };
        Ok(Self {
            client: Client::new(limits)?,
            base,
            known: moka::sync::Cache::builder()
                .max_capacity(KEPT)
                .time_to_live(REMEMBERED)
                .build(),
        })
    }

    async fn ask(&self, points: [Rounded; 2]) -> Result<Route, Error> {
        if let Some(route) = self.known.get(&points) {
            return Ok(route);
        }
        let answer = self.client.get(&self.question(points)).await;
        let route = read(&answer.map_err(unavailable)?)?;
        self.known.insert(points, route);
        Ok(route)
    }

    /// Longitude comes first, unlike everywhere else in this program.
    fn question(&self, [from, to]: [Rounded; 2]) -> Url {
        let mut url = self.base.clone();
        let path = format!("{}{};{}", url.path(), from.lng_lat(), to.lng_lat());
        url.set_path(&path);
        url.set_query(Some("overview=false"));
        url
    }
}

impl Router for Osrm {
    fn route(&self, from: LatLng, to: LatLng) -> BoxFuture<'_, Result<Route, Error>> {
        let points = [from, to].map(Rounded::from);
        self.ask(points).boxed()
    }
}

impl From<LatLng> for Rounded {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "180 degrees are far from the limit"
    )]
    fn from(point: LatLng) -> Self {
        Self {
            latitude: (point.latitude() * PER_DEGREE).round() as i32,
            longitude: (point.longitude() * PER_DEGREE).round() as i32,
        }
    }
}

impl Rounded {
    fn lng_lat(self) -> String {
        let [longitude, latitude] =
            [self.longitude, self.latitude].map(|part| f64::from(part) / PER_DEGREE);
        format!("{longitude:.5},{latitude:.5}")
    }
}

/// What is read of an answer; it has a code whatever its status.
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

fn read(answer: &Answer) -> Result<Route, Error> {
    let document: Document = serde_json::from_slice(&answer.body)
        .map_err(|error| unavailable(Refused::Unreadable(error)))?;
    match document.code.as_str() {
        "Ok" if answer.status.is_success() => {
            let first = document.routes.first();
            let sound = first.filter(|route| route.distance >= 0.0 && route.duration >= 0.0);
            let route = sound.ok_or_else(|| unavailable(Refused::NoRoutes))?;
            Ok(Route {
                meters: whole(route.distance),
                seconds: whole(route.duration),
                source: DistanceSource::Osrm,
            })
        }
        // The second: one of the points is too far from any street.
        "NoRoute" | "NoSegment" => Err(Error::NoRoute),
        code => Err(unavailable(Refused::Code {
            code: code.chars().take(40).collect(),
        })),
    }
}

fn unavailable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Unavailable(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use upstream::fixture::{Reply, Service};

    const OK: &str = r#"{"code":"Ok","routes":[{"legs":[{"steps":[],"distance":1886.3,"duration":260.6,"summary":"","weight":260.6}],"weight_name":"duration","weight":260.6,"distance":1886.3,"duration":260.6}],"waypoints":[{"hint":"","distance":4.2,"name":"Rue de Rivoli","location":[2.352,48.856]},{"hint":"","distance":2.1,"name":"","location":[2.355,48.855]}]}"#;

    fn points() -> [LatLng; 2] {
        [(48.856_61, 2.352_22), (-33.855_8, 151.2)]
            .map(|(latitude, longitude)| LatLng::new(latitude, longitude).unwrap())
    }

    fn osrm(service: &Service) -> Osrm {
        Osrm::new(&service.url, "bike", Duration::from_mins(1), 4).unwrap()
    }

    async fn route(osrm: &Osrm) -> Result<Route, Error> {
        let [from, to] = points();
        osrm.route(from, to).await
    }

    #[tokio::test]
    async fn a_way_is_asked_for_longitude_first_and_once() {
        let service = Service::start(|_, _| Reply::Text(200, OK.to_owned())).await;
        let osrm = osrm(&service);
        let [from, to] = points();
        let beside = LatLng::new(from.latitude() + 0.000_001, from.longitude()).unwrap();

        let ways = [
            osrm.route(from, to).await.unwrap(),
            osrm.route(beside, to).await.unwrap(),
            osrm.route(to, from).await.unwrap(),
        ];

        let expected = Route {
            meters: 1886,
            seconds: 261,
            source: DistanceSource::Osrm,
        };
        assert_eq!(ways, [expected; 3]);
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
        let service = Service::start(|_, _| Reply::Text(200, OK.to_owned())).await;
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

    /// The errors of the documentation, and what no documentation speaks of.
    #[tokio::test]
    async fn a_refusal_is_no_way_or_no_router() {
        let refusal = |code: &str| {
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
            let service = Service::start(move |_, _| refusal(name)).await;
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
            let service = Service::start(|_, _| Reply::Text(200, body.to_owned())).await;
            let error = route(&osrm(&service)).await.unwrap_err();
            assert!(matches!(error, Error::Unavailable(_)), "{name}: {error}");
        }
        for status in [301, 404, 429, 500, 502, 503] {
            let service = Service::start(move |_, _| Reply::Text(status, String::new())).await;
            let error = route(&osrm(&service)).await.unwrap_err();
            assert!(matches!(error, Error::Unavailable(_)), "{status}: {error}");
        }
    }

    #[tokio::test]
    async fn a_router_that_answers_late_or_without_end_is_none() {
        for reply in [|| Reply::Silence, || Reply::Endless, || Reply::Nothing] {
            let service = Service::start(move |_, _| reply()).await;
            let deadline = Duration::from_secs(2);
            let osrm = Osrm::new(&service.url, "bike", deadline, 4).unwrap();

            let error = route(&osrm).await.unwrap_err();

            assert!(matches!(error, Error::Unavailable(_)), "{error}");
        }
    }

    #[tokio::test]
    async fn a_router_that_keeps_failing_is_left_alone_and_what_it_said_is_remembered() {
        let service = Service::start(|_, before| match before {
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
    async fn no_more_is_asked_at_once_than_may_be() {
        let service = Service::start(|_, _| Reply::Silence).await;
        let osrm = Osrm::new(&service.url, "bike", Duration::from_secs(1), 2).unwrap();
        let to = |longitude| LatLng::new(48.0, longitude).unwrap();
        let [from, _] = points();

        let questions = [1.0, 2.0, 3.0, 4.0, 5.0].map(|longitude| osrm.route(from, to(longitude)));
        let answers = futures_util::future::join_all(questions).await;

        assert!(answers.iter().all(Result::is_err), "{answers:?}");
        assert_eq!(service.targets().len(), 2);
    }

    #[test]
    fn an_address_or_profile_that_cannot_be_asked_is_refused() {
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
