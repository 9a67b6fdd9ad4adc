//! Replacing the index during searches.

use std::fs;

use super::*;

#[test]
fn a_finished_import_replaces_the_index_without_a_restart() {
    let gazetteer = gazetteer_of("FR", STREET_WITH_GAPS);
    found(&gazetteer, "2 rue X, Paris");

    let mut unfinished = Import::begin(gazetteer.path()).unwrap();
    unfinished.read("file", "FR", PARIS).unwrap();
    assert!(matches!(
        Import::begin(gazetteer.path()),
        Err(ImportError::InProgress)
    ));
    found(&gazetteer, "2 rue X, Paris");
    drop(unfinished);
    found(&gazetteer, "2 rue X, Paris");

    import(&gazetteer, "FR", PARIS);
    found(&gazetteer, "24 rue de la Paix, Paris");
    assert_eq!(
        search(&gazetteer, "2 rue X, Paris"),
        "found only Paris: add or correct the street and house number"
    );
}

#[test]
fn the_file_of_a_killed_import_is_removed() {
    let gazetteer = empty();
    fs::write(gazetteer.path().with_extension("sqlite.new"), "incomplete").unwrap();

    import(&gazetteer, "FR", STREET_WITH_GAPS.as_bytes());

    found(&gazetteer, "2 rue X, Paris");
}

#[test]
fn an_invalid_index_file_leaves_the_previous_index_in_use() {
    let gazetteer = gazetteer_of("FR", STREET_WITH_GAPS);
    found(&gazetteer, "2 rue X, Paris");

    let other = gazetteer.path().with_extension("other");
    fs::write(&other, "not an index").unwrap();
    fs::rename(&other, gazetteer.path()).unwrap();

    found(&gazetteer, "2 rue X, Paris");
    let restarted = Gazetteer::new(gazetteer.path());
    assert!(matches!(
        restarted.search(&Query::new("x")),
        Err(SearchError::NoIndex(_))
    ));
}

#[test]
fn a_found_address_is_cached_until_an_import_and_only_for_the_same_query() {
    let gazetteer = gazetteer_of("FR", STREET_WITH_GAPS);
    let query = Query::new("2 rue X, Paris");
    assert_eq!(gazetteer.cached_result(&query), None);

    let result = gazetteer.search(&query).unwrap();

    assert!(matches!(result, GeocodeResult::Found(_)));
    assert_eq!(gazetteer.cached_result(&query), Some(result.clone()));
    let of_a_store = Query {
        store_id: Some(StoreId::new()),
        ..query.clone()
    };
    assert_eq!(gazetteer.cached_result(&of_a_store), Some(result));
    let near = LatLng::new(48.8, 2.3).ok();
    for other in [
        Query::new("2 rue Y, Paris"),
        Query {
            near,
            ..query.clone()
        },
        Query {
            country: Some("FR".to_owned()),
            ..query.clone()
        },
        Query {
            required: Precision::Locality,
            ..query.clone()
        },
    ] {
        assert_eq!(gazetteer.cached_result(&other), None, "{other:?}");
    }

    import(&gazetteer, "FR", PARIS);
    assert_eq!(
        gazetteer.cached_result(&query),
        None,
        "before the next search"
    );
    gazetteer.search(&query).unwrap();
    assert_eq!(
        gazetteer.cached_result(&query),
        None,
        "an address that is not found"
    );
}
