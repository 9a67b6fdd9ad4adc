//! Measures the accuracy and latency of a gazetteer.

use std::{fmt, time::Instant};

use domain::address::LatLng;
use geocoding::{Gazetteer, GeocodeResult, Query};

use crate::{noise::add_noise, random::Random, region::Region};

/// A query with the expected point; `None` for an unknown street.
pub(crate) struct Sample {
    pub(crate) text: String,
    pub(crate) expected: Option<LatLng>,
    pub(crate) near: Option<LatLng>,
}

/// Shares are from 0 to 1.
pub(crate) struct Accuracy {
    /// Noisy addresses with the correct point.
    pub(crate) correct: f64,
    /// Noisy addresses with another point.
    pub(crate) wrong: f64,
    /// Unknown streets that are not found.
    pub(crate) rejected: f64,
    /// Latency per query in microseconds, sorted.
    pub(crate) latencies: Vec<u128>,
    /// Queries with an incorrect result, and the result.
    pub(crate) incorrect_results: Vec<String>,
}

/// Samples of noisy addresses and of unknown streets, `count` of each.
pub(crate) fn samples(random: &mut Random, region: &Region, count: usize) -> Vec<Sample> {
    let mut samples = Vec::with_capacity(2 * count);
    for _ in 0..count {
        let address = &region.addresses[random.below(region.addresses.len())];
        let noisy = add_noise(random, address, region.is_in_several_towns(&address.street));
        let rounded = |degrees: f64| format!("{degrees:.6}").parse().unwrap();
        let point = LatLng::new(rounded(address.latitude), rounded(address.longitude)).unwrap();
        samples.push(Sample {
            text: noisy.text,
            expected: Some(point),
            near: noisy.needs_near.then_some(point),
        });

        let unknown = region.unknown_street(random);
        samples.push(Sample {
            text: format!(
                "{} {}, {} {}",
                unknown.number, unknown.street, unknown.postcode, unknown.town
            ),
            expected: None,
            near: None,
        });
    }
    samples
}

pub(crate) fn measure(gazetteer: &Gazetteer, samples: &[Sample]) -> Accuracy {
    let (mut houses, mut correct, mut wrong) = (0_u32, 0_u32, 0_u32);
    let (mut unknown, mut rejected) = (0_u32, 0_u32);
    let mut latencies = Vec::new();
    let mut incorrect_results = Vec::new();
    for sample in samples {
        let query = Query {
            near: sample.near,
            ..Query::new(&sample.text)
        };
        let result = gazetteer.search(&query).unwrap();
        // The fastest of three runs, because other processes use the CPU too.
        let fastest = (0..3).map(|_| {
            let start = Instant::now();
            gazetteer.search(&query).unwrap();
            start.elapsed().as_micros()
        });
        latencies.extend(fastest.min());

        let found = match &result {
            GeocodeResult::Found(found) => Some(found.lat_lng),
            _ => None,
        };
        let is_correct = found == sample.expected;
        if sample.expected.is_some() {
            houses += 1;
            correct += u32::from(is_correct);
            wrong += u32::from(!is_correct && found.is_some());
        } else {
            unknown += 1;
            rejected += u32::from(is_correct);
        }
        if !is_correct {
            let actual = match result {
                GeocodeResult::Found(found) => found.formatted,
                GeocodeResult::Partial(partial) => partial.to_string(),
                GeocodeResult::NotFound => "nothing".to_owned(),
            };
            incorrect_results.push(format!("{}: {actual}", sample.text));
        }
    }
    latencies.sort_unstable();
    let share = |part: u32, all: u32| f64::from(part) / f64::from(all.max(1));
    Accuracy {
        correct: share(correct, houses),
        wrong: share(wrong, houses),
        rejected: share(rejected, unknown),
        latencies,
        incorrect_results,
    }
}

impl fmt::Display for Accuracy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:.2} % correct, {:.2} % wrong house, {:.2} % of unknown streets rejected",
            self.correct * 100.0,
            self.wrong * 100.0,
            self.rejected * 100.0
        )?;
        let percentile =
            |percent: usize| self.latencies[(self.latencies.len() - 1) * percent / 100];
        writeln!(
            f,
            "p50 {} µs, p99 {} µs, max {} µs",
            percentile(50),
            percentile(99),
            percentile(100)
        )?;
        for result in self.incorrect_results.iter().take(40) {
            writeln!(f, "  {result}")?;
        }
        Ok(())
    }
}
