//! Measures the accuracy of the gazetteer on a generated region. For a large region, run
//! `cargo bench -p geocoding --bench gazetteer`.
#![expect(
    clippy::unwrap_used,
    reason = "a panic fails the test with its location"
)]

mod accuracy;
mod noise;
mod random;
mod region;

use geocoding::gazetteer::{Gazetteer, Import};

use crate::{accuracy::measure, random::Random, region::Region};

#[test]
fn noisy_addresses_are_found_and_unknown_streets_are_not() {
    let mut random = Random::new(8);
    let region = Region::generate(&mut random, 20_000);
    let directory = tempfile::tempdir().unwrap();
    let gazetteer = Gazetteer::new(directory.path().join("addresses.sqlite"));
    let mut import = Import::begin(gazetteer.path()).unwrap();
    import
        .read("region.csv", "FR", region.to_csv().as_bytes())
        .unwrap();
    let stats = import.finish().unwrap();
    assert_eq!(
        stats.imported,
        u64::try_from(region.addresses.len()).unwrap()
    );

    let samples = accuracy::samples(&mut random, &region, 1_000);
    let accuracy = measure(&gazetteer, &samples);

    assert!(accuracy.correct >= 0.97, "{accuracy}");
    assert!(accuracy.rejected >= 0.99, "{accuracy}");
}
