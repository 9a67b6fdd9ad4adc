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
    /// Becomes a position at its end.
    Numbers(Vec<f64>),
    Position(LatLng),
    Ring(Vec<LatLng>),
    Polygon(Vec<Vec<LatLng>>),
    MultiPolygon(Vec<Vec<Vec<LatLng>>>),
}

impl fmt::Display for Coordinates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number(_) | Self::Numbers(_) => "a number",
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
        let Some(first) = elements.next_element()? else {
            return Err(A::Error::custom("the coordinates are empty"));
        };
        let mut array = Coordinates::array_of(first).map_err(A::Error::custom)?;
        while let Some(element) = elements.next_element()? {
            array.push(element).map_err(A::Error::custom)?;
        }
        match array {
            Coordinates::Numbers(numbers) => position(&numbers).map(Coordinates::Position),
            Coordinates::Ring(ring) => check_ring(ring).map_err(A::Error::custom),
            array => Ok(array),
        }
    }
}

impl Coordinates {
    fn array_of(first: Self) -> Result<Self, &'static str> {
        match first {
            Self::Number(number) => Ok(Self::Numbers(vec![number])),
            Self::Position(position) => Ok(Self::Ring(vec![position])),
            Self::Ring(ring) => Ok(Self::Polygon(vec![ring])),
            Self::Polygon(polygon) => Ok(Self::MultiPolygon(vec![polygon])),
            Self::Numbers(_) | Self::MultiPolygon(_) => Err("the coordinates are nested too deep"),
        }
    }

    /// Adds an element to an array, which must have the same nesting as the first.
    fn push(&mut self, element: Self) -> Result<(), &'static str> {
        match (self, element) {
            (Self::Numbers(numbers), Self::Number(number)) => numbers.push(number),
            (Self::Ring(ring), Self::Position(position)) => ring.push(position),
            (Self::Polygon(rings), Self::Ring(ring)) => rings.push(ring),
            (Self::MultiPolygon(polygons), Self::Polygon(polygon)) => polygons.push(polygon),
            _ => return Err("the coordinates have different nesting depths"),
        }
        Ok(())
    }
}

/// RFC 7946 §3.1.1: longitude, latitude and an optional altitude.
fn position<E: Error>(numbers: &[f64]) -> Result<LatLng, E> {
    let [longitude, latitude, ..] = *numbers else {
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
fn check_ring(ring: Vec<LatLng>) -> Result<Coordinates, &'static str> {
    if ring.len() < MIN_RING_POSITIONS {
        return Err("a ring has at least four positions");
    }
    if ring.first() != ring.last() {
        return Err("a ring must end where it starts");
    }
    Ok(Coordinates::Ring(ring))
}
