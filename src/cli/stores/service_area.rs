//! Parses and formats a store's service area.

use std::fmt;

use proto::{Circle, LatLng, ServiceArea, service_area};
use serde::Serialize;

/// A service area for output.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Area {
    Circle {
        /// Latitude, longitude; null: the store's address.
        center: Option<[f64; 2]>,
        radius_meters: u32,
    },
    Zone {
        zone: String,
    },
}

impl Area {
    /// Converts a service area; none means anywhere.
    pub(crate) fn new(area: ServiceArea) -> Option<Self> {
        Some(match area.area? {
            service_area::Area::Circle(circle) => Self::Circle {
                center: circle
                    .center
                    .map(|center| [center.latitude, center.longitude]),
                radius_meters: circle.radius_meters,
            },
            service_area::Area::Zone(zone) => Self::Zone { zone },
        })
    }
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Circle {
                center: None,
                radius_meters,
            } => write!(f, "within {radius_meters} m"),
            Self::Circle {
                center: Some([latitude, longitude]),
                radius_meters,
            } => write!(f, "within {radius_meters} m around {latitude},{longitude}"),
            Self::Zone { zone } => write!(f, "in {zone}"),
        }
    }
}

/// Parses `5km`, `48.8554,2.3596,5km`, `zone:NAME` or `anywhere`.
pub(crate) fn parse(text: &str) -> Result<ServiceArea, String> {
    const EXPECTED: &str = "must be a distance (5km, 800m), a location and a distance \
                        (48.8554,2.3596,5km), a zone (zone:NAME), or anywhere";
    let area = match text.split_once(':') {
        _ if text == "anywhere" => return Ok(ServiceArea::default()),
        Some(("zone", name)) if !name.trim().is_empty() => {
            Some(service_area::Area::Zone(name.trim().to_owned()))
        }
        _ => parse_circle(text).map(service_area::Area::Circle),
    };
    area.map(|area| ServiceArea { area: Some(area) })
        .ok_or_else(|| EXPECTED.to_owned())
}

fn parse_circle(text: &str) -> Option<Circle> {
    let (center, distance) = match text.rsplit_once(',') {
        Some((center, distance)) => {
            let (latitude, longitude) = center.split_once(',')?;
            let center = LatLng {
                latitude: latitude.trim().parse().ok()?,
                longitude: longitude.trim().parse().ok()?,
            };
            (Some(center), distance)
        }
        None => (None, text),
    };
    let radius_meters = parse_meters(distance.trim()).filter(|meters| *meters > 0)?;
    Some(Circle {
        center,
        radius_meters,
    })
}

/// Parses `5km`, `2.5 km` or `800m` to whole metres.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates, and core rejects too large distances"
)]
fn parse_meters(text: &str) -> Option<u32> {
    let (number, unit) = match text.strip_suffix("km") {
        Some(number) => (number, 1000.0),
        None => (text.strip_suffix('m')?, 1.0),
    };
    let meters: f64 = number.trim().parse::<f64>().ok()? * unit;
    meters.is_finite().then(|| meters.round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_is_a_circle_around_the_address_or_a_location_or_a_zone() {
        let format = |text: &str| {
            let area = parse(text).ok()?;
            Some(Area::new(area).map(|area| area.to_string()))
        };

        for (text, expected) in [
            ("5km", Some("within 5000 m")),
            ("800 m", Some("within 800 m")),
            (
                "-33.9, 151.2, 2.5km",
                Some("within 2500 m around -33.9,151.2"),
            ),
            ("zone:Centre", Some("in Centre")),
            ("zone: Île, 5km ", Some("in Île, 5km")),
            ("anywhere", None),
        ] {
            assert_eq!(format(text), Some(expected.map(str::to_owned)), "{text}");
        }
        for wrong in [
            "",
            "5",
            "km",
            "5 miles",
            "0m",
            "-5km",
            "48.8,5km",
            "a,b,5km",
            "inf km",
            "zone",
            "zone:",
            "zone: ",
            "Zone:Centre",
        ] {
            assert_eq!(format(wrong), None, "{wrong}");
        }
    }
}
