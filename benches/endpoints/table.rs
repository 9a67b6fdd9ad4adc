//! The results, as tables.

use std::collections::BTreeMap;

use crate::load::Sample;

/// The samples of each measurement, one per round.
#[derive(Default)]
pub(crate) struct Rates(BTreeMap<String, Vec<Sample>>);

impl Rates {
    pub(crate) fn add(&mut self, name: &str, sample: Sample) {
        self.0.entry(name.to_owned()).or_default().push(sample);
    }
}

/// Prints the rates, and the ratios to those of a reference in the same round.
pub(crate) fn print_ratios(what: &str, rates: &Rates, reference: &str, connections: usize) {
    let referred = &rates.0[reference];
    println!(
        "\n| {what}, {connections} connections | requests/s | p99 | ratio to {reference} (range) |"
    );
    println!("|---|---|---|---|");
    for (name, samples) in &rates.0 {
        let ratios: Vec<_> = samples
            .iter()
            .zip(referred)
            .map(|(sample, reference)| sample.rate / reference.rate)
            .collect();
        let p99: Option<Vec<_>> = samples.iter().map(|sample| sample.p99).collect();
        let p99 = p99.map_or_else(String::new, |times| format!("{:.1} ms", median(&times)));
        let rates: Vec<_> = samples.iter().map(|sample| sample.rate).collect();
        let rate = median(&rates);
        println!("| {name} | {rate:.0} | {p99} | {} |", with_range(&ratios));
    }
}

/// Prints processor times of the platform's process per request, given in seconds.
pub(crate) fn print_costs(costs: &BTreeMap<String, Vec<f64>>) {
    println!("\n| endpoint | milliseconds of processor time (range) |");
    println!("|---|---|");
    for (name, times) in costs {
        let times: Vec<_> = times.iter().map(|time| time * 1000.0).collect();
        println!("| {name} | {} |", with_range(&times));
    }
}

fn with_range(values: &[f64]) -> String {
    let sorted = sorted(values);
    let range = sorted[0]..sorted[sorted.len() - 1];
    format!(
        "{:.2} ({:.2} to {:.2})",
        median(values),
        range.start,
        range.end
    )
}

pub(crate) fn median(values: &[f64]) -> f64 {
    sorted(values)[values.len() / 2]
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}
