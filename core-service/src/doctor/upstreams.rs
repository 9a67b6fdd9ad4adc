//! Checks of the geocoders and the router: one request to each service, without personal data.

use domain::address::LatLng;
use futures_util::future::{join, join_all};
use geocoding::{Gazetteer, Geocoder as _, GeocoderSpec, HttpGeocoder, Precision, Query};
use process::redacted::Redacted;

use super::finding::{Check, FIRST_START, Finding};
use crate::{
    config::Config,
    error::GEOCODING_REMEDY,
    routing::{self, Fallback},
    start_error::StartError,
};

pub(super) async fn check(config: &'static Config) -> Vec<Check> {
    let geocoders = config.geocoding.geocoders.iter();
    let geocoders = join_all(geocoders.map(|spec| geocoder(config, spec)));
    let (mut checks, router) = join(geocoders, Check::run("router", router(config))).await;
    checks.push(router);
    checks
}

async fn geocoder(config: &'static Config, spec: &'static GeocoderSpec) -> Check {
    match spec {
        GeocoderSpec::Gazetteer => {
            Check::run("geocoder gazetteer", async { gazetteer(config) }).await
        }
        GeocoderSpec::None => {
            let none = async { Finding::ok("none: every address needs a point") };
            Check::run("geocoder", none).await
        }
        GeocoderSpec::Http(spec) => {
            let name = format!("geocoder {}", spec.protocol);
            let respond = async {
                let language = &config.platform.locale;
                let geocoder = match HttpGeocoder::new(spec, language, "doctor") {
                    Ok(geocoder) => geocoder,
                    Err(error) => return Finding::error(StartError::GeocoderTls(error)),
                };
                let query = Query {
                    required: Precision::Locality,
                    ..Query::new("Paris")
                };
                let host = spec.base_url.host_str().unwrap_or_default();
                match geocoder.geocode(&query).await {
                    Ok(_) => Finding::ok(format!("{host} responds")),
                    Err(geocoding::Error::Unavailable(cause)) => Finding::failure(
                        cause.to_string(),
                        "start the service, or correct its URL and options in --geocoder",
                    ),
                }
            };
            Check::run(name, respond).await
        }
    }
}

fn gazetteer(config: &Config) -> Finding {
    let file = &config.gazetteer_file;
    let path = file.display();
    if config.all_in_one && matches!(file.try_exists(), Ok(false)) {
        return Finding::warning(format!("{path} does not exist yet"), FIRST_START);
    }
    match Gazetteer::new(file).check() {
        Ok(()) => Finding::ok(format!("{path} has addresses")),
        Err(error) => Finding::failure(error.to_string(), GEOCODING_REMEDY),
    }
}

async fn router(config: &Config) -> Finding {
    let config = &config.router;
    let router = match config.osrm() {
        Ok(Some(router)) => router,
        Ok(None) => return Finding::skipped("none: distances are estimated"),
        Err(error) => return Finding::error(StartError::Router(error)),
    };
    let url = config.osrm_url.as_ref().map(Redacted::expose);
    let host = url.and_then(|url| url.host_str()).unwrap_or_default();
    let point = LatLng::new(48.8566, 2.3522).expect("Paris is on the Earth");
    match router.route(point, point).await {
        // Its map need not contain the point.
        Ok(_) | Err(routing::Error::NoRoute) => Finding::ok(format!("{host} responds")),
        Err(error @ routing::Error::Unavailable(_)) => {
            let unavailable = Finding::error(error).found;
            let fix = "start the OSRM server, or correct --osrm-url and --osrm-profile";
            match config.osrm_fallback {
                Fallback::StraightLine => Finding::warning(unavailable, fix),
                Fallback::Refuse => Finding::failure(unavailable, fix),
            }
        }
    }
}
