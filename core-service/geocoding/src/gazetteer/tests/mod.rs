//! Searches in a gazetteer.

mod finding;
mod formats;
mod refusing;
mod replacing;

use std::ops::Deref;

use domain::address::LatLng;
use tempfile::TempDir;

use super::*;

use crate::{Found, Precision};

/// A gazetteer whose file goes with it.
struct OnDisk {
    gazetteer: Gazetteer,
    _directory: TempDir,
}

impl Deref for OnDisk {
    type Target = Gazetteer;

    fn deref(&self) -> &Gazetteer {
        &self.gazetteer
    }
}

fn on_disk() -> OnDisk {
    let directory = tempfile::tempdir().unwrap();
    OnDisk {
        gazetteer: Gazetteer::new(directory.path().join("addresses.sqlite")),
        _directory: directory,
    }
}

fn import(gazetteer: &Gazetteer, country: &str, file: &[u8]) -> Tally {
    let mut import = Import::begin(gazetteer.path()).unwrap();
    import.read("file", country, file).unwrap();
    import.finish().unwrap()
}

fn of(country: &str, file: &str) -> OnDisk {
    let gazetteer = on_disk();
    import(&gazetteer, country, file.as_bytes());
    gazetteer
}

fn paris() -> OnDisk {
    let gazetteer = on_disk();
    gazetteer.ensure_demo().unwrap();
    gazetteer
}

fn answer(gazetteer: &Gazetteer, text: &str) -> Answer {
    gazetteer.search(&Query::new(text)).unwrap()
}

fn found(gazetteer: &Gazetteer, text: &str) -> Found {
    match answer(gazetteer, text) {
        Answer::Found(found) => found,
        other => panic!("{text}: {other:?}"),
    }
}

fn towns() -> OnDisk {
    let csv = "id;numero;rep;nom_voie;code_postal;nom_commune;lon;lat\n\
        a;1;;Rue de Paris;93100;Montreuil;2.4366;48.8570\n\
        b;1;;Rue de Paris;93260;Les Lilas;2.4140;48.8790\n\
        c;1;;Rue de Paris;59000;Lille;3.0640;50.6340\n\
        d;12;;Rue de Paris;59000;Lille;3.0645;50.6335\n\
        e;12;bis;Rue de Paris;59000;Lille;3.0646;50.6334\n";
    of("FR", csv)
}

/// What a search gives, in a line.
fn search(gazetteer: &Gazetteer, text: &str) -> String {
    match answer(gazetteer, text) {
        Answer::Found(found) => found.formatted,
        Answer::Unclear(unclear) => unclear.to_string(),
        Answer::NotFound => "nothing".into(),
    }
}

/// A street with gaps.
const LINE: &str = "numero;rep;nom_voie;code_postal;nom_commune;lon;lat\n\
    2;;Rue X;75001;Paris;2.3000;48.8000\n\
    10;;Rue X;75001;Paris;2.3008;48.8000\n\
    11;;Rue X;75001;Paris;2.3008;48.8001\n\
    90;;Rue X;75001;Paris;2.4000;48.8000\n";
