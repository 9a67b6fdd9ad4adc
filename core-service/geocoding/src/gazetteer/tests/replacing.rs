//! An index in the place of another, while it is searched.

use std::fs;

use super::*;

#[test]
fn a_new_index_is_in_force_without_a_restart_and_an_unfinished_one_never() {
    let gazetteer = of("FR", LINE);
    found(&gazetteer, "2 rue X, Paris");

    let mut unfinished = Import::begin(gazetteer.path()).unwrap();
    unfinished.read("file", "FR", PARIS).unwrap();
    assert!(matches!(
        Import::begin(gazetteer.path()),
        Err(ImportError::UnderWay)
    ));
    found(&gazetteer, "2 rue X, Paris");
    drop(unfinished);
    found(&gazetteer, "2 rue X, Paris");

    import(&gazetteer, "FR", PARIS);
    found(&gazetteer, "24 rue de la Paix, Paris");
    assert_eq!(
        search(&gazetteer, "2 rue X, Paris"),
        "found Paris, but not the street"
    );
}

#[test]
fn what_a_killed_import_left_is_no_hindrance() {
    let gazetteer = on_disk();
    fs::write(gazetteer.path().with_extension("sqlite.new"), "half").unwrap();

    import(&gazetteer, "FR", LINE.as_bytes());

    found(&gazetteer, "2 rue X, Paris");
}

#[test]
fn a_file_that_is_no_index_leaves_the_one_before_in_force() {
    let gazetteer = of("FR", LINE);
    found(&gazetteer, "2 rue X, Paris");

    let other = gazetteer.path().with_extension("other");
    fs::write(&other, "no index").unwrap();
    fs::rename(&other, gazetteer.path()).unwrap();

    found(&gazetteer, "2 rue X, Paris");
    let fresh = Gazetteer::new(gazetteer.path());
    assert!(matches!(
        fresh.search(&Query::new("x")),
        Err(SearchError::Nothing(_))
    ));
}
