//! How often the gazetteer understands people, on a generated region. The figures of a large one
//! are measured by `cargo bench -p core-service --bench gazetteer`.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and says where"
)]

mod accuracy;
mod city;
mod disturbing;
mod random;

use geocoding::gazetteer::{Gazetteer, Import};

use crate::{accuracy::measure, city::Region, random::Random};

#[test]
fn disturbed_addresses_are_found_and_streets_that_do_not_exist_are_not() {
    let mut random = Random::new(8);
    let region = Region::generate(&mut random, 20_000);
    let directory = tempfile::tempdir().unwrap();
    let gazetteer = Gazetteer::new(directory.path().join("addresses.sqlite"));
    let mut import = Import::begin(gazetteer.path()).unwrap();
    import
        .read("region.csv", "FR", region.to_csv().as_bytes())
        .unwrap();
    let tally = import.finish().unwrap();
    assert_eq!(tally.taken, u64::try_from(region.addresses.len()).unwrap());

    let questions = accuracy::questions(&mut random, &region, 1_000);
    let accuracy = measure(&gazetteer, &questions);

    assert!(accuracy.right >= 0.97, "{accuracy}");
    assert!(accuracy.refused >= 0.99, "{accuracy}");
}
