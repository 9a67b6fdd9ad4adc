//! Parses and formats a store's service area.

use proto::{Circle, ServiceArea, service_area::Area};
use serde_json::{Value, json};

use crate::cli::address::{located, parse_lat_lng};

/// `center` is latitude and longitude; null: the store's address.
pub(super) fn json(area: &Area) -> Value {
    match area {
        Area::Circle(Circle {
            center,
            radius_meters,
        }) => json!({
            "center": center.map(|center| [center.latitude, center.longitude]),
            "radius_meters": radius_meters,
        }),
        Area::Zone(zone) => json!({ "zone": zone }),
    }
}

pub(super) fn text(area: &Area) -> String {
    match area {
        Area::Circle(circle) => {
            let radius = format!("within {} m", circle.radius_meters);
            match circle.center {
                Some(center) => format!("{radius} around {}", located(center)),
                None => radius,
            }
        }
        Area::Zone(zone) => format!("in {zone}"),
    }
}

/// Parses `5km`, `48.8554,2.3596,5km`, `zone:NAME` or `anywhere`.
pub(crate) fn parse(text: &str) -> Result<ServiceArea, String> {
    const EXPECTED: &str = "must be a distance (5km, 800m), a location and a distance \
                        (48.8554,2.3596,5km), a zone (zone:NAME), or anywhere";
    let area = match text.split_once(':') {
        _ if text == "anywhere" => return Ok(ServiceArea::default()),
        Some(("zone", name)) if !name.trim().is_empty() => Some(Area::Zone(name.trim().to_owned())),
        _ => parse_circle(text).map(Area::Circle),
    };
    area.map(|area| ServiceArea { area: Some(area) })
        .ok_or_else(|| EXPECTED.to_owned())
}

fn parse_circle(text: &str) -> Option<Circle> {
    let (center, distance) = match text.rsplit_once(',') {
        Some((center, distance)) => (Some(parse_lat_lng(center).ok()?), distance),
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
            Some(area.area.as_ref().map(super::text))
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
