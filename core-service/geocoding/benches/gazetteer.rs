//! Imports and searches a region of 350,000 addresses, and prints speed, size and accuracy:
//! `cargo bench -p geocoding --bench gazetteer`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark panics on errors and prints its results"
)]

#[path = "../tests/gazetteer/accuracy.rs"]
mod accuracy;
#[path = "../tests/gazetteer/noise.rs"]
mod noise;
#[path = "../tests/gazetteer/random.rs"]
mod random;
#[path = "../tests/gazetteer/region.rs"]
mod region;

use std::{fs, path::Path, process::Command, time::Instant};

use geocoding::gazetteer::{Gazetteer, Import};

use crate::{
    accuracy::{measure, samples},
    random::Random,
    region::Region,
};

const ADDRESSES: usize = 350_000;
const SAMPLES: usize = 2_000;
const SEED: u64 = 20_261_121;

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    if let [_, command, index] = arguments.as_slice()
        && command == "resident"
    {
        return print_resident_memory(Path::new(index));
    }

    let mut random = Random::new(SEED);
    let region = Region::generate(&mut random, ADDRESSES);
    let csv = region.to_csv();
    let directory = tempfile::tempdir().unwrap();
    let index = directory.path().join("addresses.sqlite");
    println!(
        "{} addresses, {} MB of CSV",
        region.addresses.len(),
        csv.len() / 1_000_000
    );

    let start = Instant::now();
    let mut import = Import::begin(&index).unwrap();
    import.read("region.csv", "FR", csv.as_bytes()).unwrap();
    let stats = import.finish().unwrap();
    let seconds = start.elapsed().as_secs_f64();
    let per_second = f64::from(u32::try_from(stats.imported).unwrap()) / seconds;
    let megabytes = fs::metadata(&index).unwrap().len() / 1_000_000;
    println!("import: {stats}, {seconds:.1} s, {per_second:.0}/s, {megabytes} MB on disk");

    let samples = samples(&mut random, &region, SAMPLES);
    let gazetteer = Gazetteer::new(&index);
    let accuracy = measure(&gazetteer, &samples);
    println!("{accuracy}");

    // Memory is measured in a separate process that only searches.
    let texts: Vec<_> = samples
        .iter()
        .map(|sample| sample.text.replace('\n', " "))
        .collect();
    fs::write(index.with_extension("texts"), texts.join("\n")).unwrap();
    let exit_status = Command::new(std::env::current_exe().unwrap())
        .arg("resident")
        .arg(&index)
        .status()
        .unwrap();
    assert!(exit_status.success());
}

/// Searches for the texts stored beside an index, and prints the memory use of this process.
fn print_resident_memory(index: &Path) {
    let gazetteer = Gazetteer::new(index);
    for text in fs::read_to_string(index.with_extension("texts"))
        .unwrap()
        .lines()
    {
        gazetteer.search(&geocoding::Query::new(text)).unwrap();
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status
        .lines()
        .filter(|line| line.starts_with("VmHWM") || line.starts_with("VmRSS"))
    {
        println!("resident: {line}");
    }
}
