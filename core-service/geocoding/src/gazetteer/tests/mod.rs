//! Imports and searches.

mod formats;
mod found;
mod not_found;
mod replacement;

use std::ops::Deref;

use domain::{address::LatLng, id::StoreId};
use tempfile::TempDir;

use super::*;

use crate::{GeocodeMatch, Precision};

/// A gazetteer in a temporary directory.
struct TemporaryGazetteer {
    gazetteer: Gazetteer,
    _directory: TempDir,
}

impl Deref for TemporaryGazetteer {
    type Target = Gazetteer;

    fn deref(&self) -> &Gazetteer {
        &self.gazetteer
    }
}

fn empty() -> TemporaryGazetteer {
    let directory = tempfile::tempdir().unwrap();
    TemporaryGazetteer {
        gazetteer: Gazetteer::new(directory.path().join("addresses.sqlite")),
        _directory: directory,
    }
}

fn import(gazetteer: &Gazetteer, country: &str, file: &[u8]) -> ImportStats {
    let mut import = Import::begin(gazetteer.path()).unwrap();
    import.read("file", country, file).unwrap();
    import.finish().unwrap()
}

fn gazetteer_of(country: &str, file: &str) -> TemporaryGazetteer {
    let gazetteer = empty();
    import(&gazetteer, country, file.as_bytes());
    gazetteer
}

fn paris() -> TemporaryGazetteer {
    let gazetteer = empty();
    gazetteer.ensure_demo().unwrap();
    gazetteer
}

fn result(gazetteer: &Gazetteer, text: &str) -> GeocodeResult {
    gazetteer.search(&Query::new(text)).unwrap()
}

fn found(gazetteer: &Gazetteer, text: &str) -> GeocodeMatch {
    match result(gazetteer, text) {
        GeocodeResult::Found(found) => found,
        other => panic!("{text}: {other:?}"),
    }
}

fn towns() -> TemporaryGazetteer {
    let csv = "id;numero;rep;nom_voie;code_postal;nom_commune;lon;lat\n\
        a;1;;Rue de Paris;93100;Montreuil;2.4366;48.8570\n\
        b;1;;Rue de Paris;93260;Les Lilas;2.4140;48.8790\n\
        c;1;;Rue de Paris;59000;Lille;3.0640;50.6340\n\
        d;12;;Rue de Paris;59000;Lille;3.0645;50.6335\n\
        e;12;bis;Rue de Paris;59000;Lille;3.0646;50.6334\n";
    gazetteer_of("FR", csv)
}

/// The result of a search in one line.
fn search(gazetteer: &Gazetteer, text: &str) -> String {
    match result(gazetteer, text) {
        GeocodeResult::Found(found) => found.formatted,
        GeocodeResult::Partial(partial) => partial.to_string(),
        GeocodeResult::NotFound => "nothing".into(),
    }
}

/// A street with gaps between its house numbers.
const STREET_WITH_GAPS: &str = "numero;rep;nom_voie;code_postal;nom_commune;lon;lat\n\
    2;;Rue X;75001;Paris;2.3000;48.8000\n\
    10;;Rue X;75001;Paris;2.3008;48.8000\n\
    11;;Rue X;75001;Paris;2.3008;48.8001\n\
    90;;Rue X;75001;Paris;2.4000;48.8000\n";
