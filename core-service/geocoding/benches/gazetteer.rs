//! Imports and searches a region of 350,000 addresses, and prints how fast, how large and how
//! well: `cargo bench -p core-service --bench gazetteer`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot go on has failed, and its figures are what it is for"
)]

#[path = "../tests/gazetteer/accuracy.rs"]
mod accuracy;
#[path = "../tests/gazetteer/city.rs"]
mod city;
#[path = "../tests/gazetteer/disturbing.rs"]
mod disturbing;
#[path = "../tests/gazetteer/random.rs"]
mod random;

use std::{fs, path::Path, process::Command, time::Instant};

use geocoding::gazetteer::{Gazetteer, Import};

use crate::{
    accuracy::{measure, questions},
    city::Region,
    random::Random,
};

const ADDRESSES: usize = 350_000;
const QUESTIONS: usize = 2_000;
const SEED: u64 = 20_261_121;

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    if let [_, command, index] = arguments.as_slice()
        && command == "resident"
    {
        return tell_resident(Path::new(index));
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
    let tally = import.finish().unwrap();
    let seconds = start.elapsed().as_secs_f64();
    let per_second = f64::from(u32::try_from(tally.taken).unwrap()) / seconds;
    let megabytes = fs::metadata(&index).unwrap().len() / 1_000_000;
    println!("import: {tally}, {seconds:.1} s, {per_second:.0}/s, {megabytes} MB on disk");

    let questions = questions(&mut random, &region, QUESTIONS);
    let gazetteer = Gazetteer::new(&index);
    let accuracy = measure(&gazetteer, &questions);
    println!("{accuracy}");

    // In a process that has only searched.
    let texts: Vec<_> = questions
        .iter()
        .map(|question| question.text.replace('\n', " "))
        .collect();
    fs::write(index.with_extension("texts"), texts.join("\n")).unwrap();
    let told = Command::new(std::env::current_exe().unwrap())
        .arg("resident")
        .arg(&index)
        .status()
        .unwrap();
    assert!(told.success());
}

/// Asks the questions beside an index, and prints what the kernel says of this process.
fn tell_resident(index: &Path) {
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
