//! Parses GeoJSON coordinates. Checks them while parsing, so that an error has a line and column.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Visitor},
};

use crate::address::LatLng;

/// The smallest ring is a closed triangle.
const MIN_RING_POSITIONS: usize = 4;

/// The nesting levels of a coordinates array, from the innermost.
pub(super) enum Coordinates {
    Number(f64),
    Position(LatLng),
    Ring(Vec<LatLng>),
    Polygon(Vec<Vec<LatLng>>),
    MultiPolygon(Vec<Vec<Vec<LatLng>>>),
}

impl fmt::Display for Coordinates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number(_) => "a number",
            Self::Position(_) => "a Point",
            Self::Ring(_) => "a LineString",
            Self::Polygon(_) => "a Polygon",
            Self::MultiPolygon(_) => "a MultiPolygon",
        })
    }
}

impl<'de> Deserialize<'de> for Coordinates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CoordinatesVisitor)
    }
}

struct CoordinatesVisitor;

impl<'de> Visitor<'de> for CoordinatesVisitor {
    type Value = Coordinates;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("coordinates: numbers in arrays")
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Coordinates, E> {
        Ok(Coordinates::Number(number))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a number that large is not a longitude"
    )]
    fn visit_i64<E: Error>(self, number: i64) -> Result<Coordinates, E> {
        self.visit_f64(number as f64)
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a number that large is not a longitude"
    )]
    fn visit_u64<E: Error>(self, number: u64) -> Result<Coordinates, E> {
        self.visit_f64(number as f64)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Coordinates, A::Error> {
        let coordinates = match elements.next_element()? {
            None => return Err(A::Error::custom("the coordinates are empty")),
            Some(Coordinates::Number(number)) => {
                let more = rest(elements, |element| match element {
                    Coordinates::Number(number) => Some(number),
                    _ => None,
                })?;
                Coordinates::Position(position(number, &more)?)
            }
            Some(Coordinates::Position(first)) => {
                let mut ring = rest(elements, |element| match element {
                    Coordinates::Position(position) => Some(position),
                    _ => None,
                })?;
                ring.insert(0, first);
                Coordinates::Ring(ring)
            }
            Some(Coordinates::Ring(first)) => {
                let mut rings = rest(elements, |element| match element {
                    Coordinates::Ring(ring) => Some(ring),
                    _ => None,
                })?;
                rings.insert(0, first);
                Coordinates::Polygon(rings)
            }
            Some(Coordinates::Polygon(first)) => {
                let mut polygons = rest(elements, |element| match element {
                    Coordinates::Polygon(polygon) => Some(polygon),
                    _ => None,
                })?;
                polygons.insert(0, first);
                Coordinates::MultiPolygon(polygons)
            }
            Some(Coordinates::MultiPolygon(_)) => {
                return Err(A::Error::custom("the coordinates are nested too deep"));
            }
        };
        if let Coordinates::Ring(ring) = &coordinates {
            check_ring(ring).map_err(A::Error::custom)?;
        }
        Ok(coordinates)
    }
}

/// The other elements, which must have the same nesting as the first.
fn rest<'de, A: SeqAccess<'de>, T>(
    mut elements: A,
    same_level: impl Fn(Coordinates) -> Option<T>,
) -> Result<Vec<T>, A::Error> {
    let mut more = Vec::new();
    while let Some(element) = elements.next_element()? {
        let element = same_level(element)
            .ok_or_else(|| A::Error::custom("the coordinates have different nesting depths"))?;
        more.push(element);
    }
    Ok(more)
}

/// RFC 7946 §3.1.1: longitude, latitude and an optional altitude.
fn position<E: Error>(longitude: f64, more: &[f64]) -> Result<LatLng, E> {
    let [latitude, ..] = *more else {
        return Err(E::custom("a position is longitude and latitude"));
    };
    LatLng::new(latitude, longitude).map_err(|_| {
        E::custom(format_args!(
            "[{longitude}, {latitude}] is out of range: longitude comes first, from -180 to \
             180, then latitude, from -90 to 90"
        ))
    })
}

/// RFC 7946 §3.1.6.
fn check_ring(ring: &[LatLng]) -> Result<(), &'static str> {
    if ring.len() < MIN_RING_POSITIONS {
        return Err("a ring has at least four positions");
    }
    if ring.first() != ring.last() {
        return Err("a ring must end where it starts");
    }
    Ok(())
}
