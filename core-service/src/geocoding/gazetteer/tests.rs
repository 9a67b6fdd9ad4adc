//! Searches in a gazetteer.

use std::ops::Deref;

use tempfile::TempDir;

use super::*;
use crate::{
    domain::address::LatLng,
    geocoding::{Found, Missing, Precision, Reason, Role},
};

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

#[test]
fn an_address_is_found_whole() {
    let paris = paris();
    let answer = answer(&paris, "24 Rue de la Paix, 75002 Paris");

    assert_eq!(
        answer,
        Answer::Found(Found {
            formatted: "24 Rue de la Paix, 75002 Paris".into(),
            postal_code: Some("75002".into()),
            locality: Some("Paris".into()),
            country: Some("FR".into()),
            lat_lng: LatLng::new(48.87008, 2.33144).unwrap(),
            precision: Precision::House,
            confidence: 1.0,
            reasons: [
                ("24", Role::HouseNumber),
                ("Rue Paix", Role::Street),
                ("Paris", Role::Locality),
                ("75002", Role::Postcode),
            ]
            .map(|(words, role)| Reason::Read {
                words: words.into(),
                role
            })
            .into(),
        })
    );
}

#[test]
fn an_address_is_found_however_it_is_written() {
    let paris = paris();
    for (text, expected) in [
        ("24, Rue de la Paix Paris", "24 Rue de la Paix, 75002 Paris"),
        ("24 rue de la paix", "24 Rue de la Paix, 75002 Paris"),
        (
            "24 RUE DE LA PAIX PARIS FRANCE",
            "24 Rue de la Paix, 75002 Paris",
        ),
        (
            "24, r. de la Paix, 75002 Paris, France",
            "24 Rue de la Paix, 75002 Paris",
        ),
        ("24 rue paix 75002", "24 Rue de la Paix, 75002 Paris"),
        ("Rue de la Paix 24, Paris", "24 Rue de la Paix, 75002 Paris"),
        (
            "24 rue de la Paix, Paris 2e",
            "24 Rue de la Paix, 75002 Paris",
        ),
        (
            "24 rue de la Paix, 75000 Paris",
            "24 Rue de la Paix, 75002 Paris",
        ),
        (
            "24-26 rue de la Paix, Paris",
            "24 Rue de la Paix, 75002 Paris",
        ),
        (
            "Chez Sylvie, 24 rue de la Paix, Paris",
            "24 Rue de la Paix, 75002 Paris",
        ),
        (
            "Appt 10, 24 rue de la Paix, Paris",
            "24 Rue de la Paix, 75002 Paris",
        ),
        (
            "24 rue de la Paix, 3e étage, code 1234",
            "24 Rue de la Paix, 75002 Paris",
        ),
        ("101 Rue de la Paix", "101 Rue de la Paix, 75002 Paris"),
        ("44 rue de rivoli", "44 Rue de Rivoli, 75004 Paris"),
        ("48, Rue de Rivoli Paris", "48 Rue de Rivoli, 75004 Paris"),
        ("52 Rue de Rivoli", "52 Rue de Rivoli, 75004 Paris"),
        ("64 Rue de Rivoli", "64 Rue de Rivoli, 75004 Paris"),
        ("45 rue d’ulm paris", "45 Rue d'Ulm, 75005 Paris"),
        (
            "272, rue St Honore 75001 PARIS",
            "272 Rue Saint-Honoré, 75001 Paris",
        ),
        (
            "55 rue du fbg St-Honoré",
            "55 Rue du Faubourg Saint-Honoré, 75008 Paris",
        ),
        (
            "99 av des champs elysees",
            "99 Avenue des Champs-Élysées, 75008 Paris",
        ),
        (
            "116bis av. des Champs-Élysées",
            "116 bis Avenue des Champs-Élysées, 75008 Paris",
        ),
        (
            "116 BIS avenue des Champs-Élysées",
            "116 bis Avenue des Champs-Élysées, 75008 Paris",
        ),
        (
            "1 pl. du 11 novembre 1918",
            "1 Place du 11 Novembre 1918, 75010 Paris",
        ),
        (
            "6 parvis Notre-Dame",
            "6 Parvis Notre-Dame - Place Jean-Paul II, 75004 Paris",
        ),
    ] {
        assert_eq!(search(&paris, text), expected, "{text}");
    }
}

#[test]
fn what_is_not_good_enough_says_what_was_found() {
    let paris = paris();
    for (text, expected) in [
        (
            "480 rue de Rivoli, Paris",
            "found Rue de Rivoli, Paris, but no number 480",
        ),
        (
            "480 bis rue de Rivoli",
            "found Rue de Rivoli, Paris, but no number 480 bis",
        ),
        (
            "rue de Rivoli",
            "found Rue de Rivoli, Paris; the house number is missing",
        ),
        ("Paris", "found Paris, but not the street"),
        ("75004", "found Paris, but not the street"),
        (
            "24 rue qui n'existe pas, Paris",
            "found Paris, but not the street",
        ),
        (
            "24 rue de la Paix, Lyon",
            "found 24 Rue de la Paix, 75002 Paris, but did not understand \"lyon\"",
        ),
        (
            "24 rue de la Paix, 69002 Lyon",
            "found 24 Rue de la Paix, 75002 Paris, but not in 69002",
        ),
        (
            "24 rue de la Paix, Puteaux",
            "found 24 Rue de la Paix, 75002 Paris, but not in Puteaux",
        ),
        ("10 Downing Street, London", "nothing"),
        ("", "nothing"),
        ("é\u{301}\u{0} ;", "nothing"),
        (
            "99999999999999999999 rue de Rivoli",
            "found Rue de Rivoli, Paris; the house number is missing",
        ),
    ] {
        assert_eq!(search(&paris, text), expected, "{text}");
    }
}

#[test]
fn a_street_of_several_towns_needs_one_of_them() {
    let towns = towns();
    for (text, expected) in [
        (
            "1 rue de Paris",
            "found 1 Rue de Paris, 93100 Montreuil; 1 Rue de Paris, 93260 Les Lilas; \
             1 Rue de Paris, 59000 Lille; the town or its postcode is missing",
        ),
        ("1 rue de Paris, Lille", "1 Rue de Paris, 59000 Lille"),
        ("1 rue de Paris, 93260", "1 Rue de Paris, 93260 Les Lilas"),
        ("12 rue de Paris", "12 Rue de Paris, 59000 Lille"),
        ("12A rue de Paris, Lille", "12A Rue de Paris, 59000 Lille"),
        (
            "12 ter rue de Paris, Lille",
            "12 ter Rue de Paris, 59000 Lille",
        ),
    ] {
        assert_eq!(search(&towns, text), expected, "{text}");
    }
}

#[test]
fn the_area_of_who_asks_decides_between_towns() {
    let near_lille = Query {
        near: Some(LatLng::new(50.62, 3.05).unwrap()),
        ..Query::new("1 rue de Paris")
    };
    let Answer::Found(found) = towns().search(&near_lille).unwrap() else {
        panic!("one of the towns is near");
    };
    assert_eq!(found.locality.as_deref(), Some("Lille"));
}

#[test]
fn a_house_that_differs_in_its_suffix_is_interpolated() {
    let demanding = Query {
        demand: Precision::House,
        ..Query::new("12A rue de Paris, Lille")
    };
    let Answer::Unclear(unclear) = towns().search(&demanding).unwrap() else {
        panic!("12A is not known");
    };
    assert_eq!(unclear.missing, Missing::HouseNumber(Some("12A".into())));
    assert_eq!(unclear.candidates[0].precision, Precision::Interpolated);
}

#[test]
fn other_countries_are_not_searched() {
    let in_belgium = Query {
        country: Some("BE".into()),
        ..Query::new("24 rue de la Paix, Paris")
    };
    assert_eq!(paris().search(&in_belgium).unwrap(), Answer::NotFound);
}

#[test]
fn a_slip_of_the_keyboard_is_seen_through_and_said() {
    let paris = paris();
    for (text, expected) in [
        ("24 rue de la Piax, Paris", "24 Rue de la Paix, 75002 Paris"),
        (
            "24 reu de la Paix, 75002",
            "found Paris, but not the street; similar are Rue de la Paix, Paris",
        ),
        ("48 rue de Rivolli, Pariss", "48 Rue de Rivoli, 75004 Paris"),
        (
            "99 Champs Elisées, Paris",
            "99 Avenue des Champs-Élysées, 75008 Paris",
        ),
        ("24 rue de la Paie, Paris", "24 Rue de la Paix, 75002 Paris"),
    ] {
        assert_eq!(search(&paris, text), expected, "{text}");
    }
    let misspelt = found(&paris, "48 rue de Rivolli, Pariss");
    let spelling = |written: &str, known: &str| Reason::Spelling {
        written: written.into(),
        known: known.into(),
    };
    for reason in [spelling("Rivolli", "rivoli"), spelling("Pariss", "Paris")] {
        assert!(misspelt.reasons.contains(&reason), "{:?}", misspelt.reasons);
    }
    assert!(misspelt.confidence < found(&paris, "48 rue de Rivoli, Paris").confidence);
}

#[test]
fn words_behind_the_town_make_another_town_of_it() {
    let paris = paris();
    for (text, expected) in [
        (
            "24 rue de la Paix, Paris, Texas, USA",
            "found 24 Rue de la Paix, 75002 Paris, but did not understand \"texas usa\"",
        ),
        (
            "24 rue de la Paix, Paris, Île-de-France, France",
            "24 Rue de la Paix, 75002 Paris",
        ),
        (
            "24 rue de la Paix, Paris, 3e étage, Sylvie",
            "24 Rue de la Paix, 75002 Paris",
        ),
    ] {
        assert_eq!(search(&paris, text), expected, "{text}");
    }
}

#[test]
fn a_wrong_postcode_beside_the_right_town_is_said() {
    let answer = found(&paris(), "24 rue de la Paix, 75000 Paris");

    let reason = Reason::Postcode {
        written: "75000".into(),
        known: "75002".into(),
    };
    assert!(answer.reasons.contains(&reason), "{:?}", answer.reasons);
    assert!(answer.confidence < 0.8, "{}", answer.confidence);
}

#[test]
fn a_postcode_of_another_town_with_the_same_address_is_not_chosen_between() {
    assert_eq!(
        search(&towns(), "1 rue de Paris, 93260 Montreuil"),
        "found 1 Rue de Paris, 93100 Montreuil; 1 Rue de Paris, 93260 Les Lilas; \
         the town or its postcode is missing"
    );
}

#[test]
fn a_name_that_is_longer_than_a_street_s_is_another_street() {
    let paris = paris();
    for text in [
        "24 rue de la Paix Dorée, Paris",
        "24 petite rue de la Paix, Paris",
        "24 avenue de la Paix, Paris",
    ] {
        let answer = answer(&paris, text);
        let Answer::Unclear(unclear) = &answer else {
            panic!("{text}: {answer:?}");
        };
        assert_eq!(unclear.missing, Missing::Street, "{text}");
    }
}

const LINE: &str = "numero;rep;nom_voie;code_postal;nom_commune;lon;lat\n\
    2;;Rue X;75001;Paris;2.3000;48.8000\n\
    10;;Rue X;75001;Paris;2.3008;48.8000\n\
    11;;Rue X;75001;Paris;2.3008;48.8001\n\
    90;;Rue X;75001;Paris;2.4000;48.8000\n";

#[test]
fn a_house_between_its_neighbours_is_interpolated_and_marked() {
    let gazetteer = of("FR", LINE);

    let between = found(&gazetteer, "4 rue X, Paris");

    assert_eq!(between.lat_lng, LatLng::new(48.8, 2.3002).unwrap());
    assert_eq!(between.precision, Precision::Interpolated);
    assert_eq!(
        between.reasons.last(),
        Some(&Reason::Between("2".into(), "10".into()))
    );
    // Its neighbours are seven kilometres apart.
    assert_eq!(
        search(&gazetteer, "50 rue X, Paris"),
        "found Rue X, Paris, but no number 50"
    );
    // Nobody is behind it.
    assert_eq!(
        search(&gazetteer, "92 rue X, Paris"),
        "found Rue X, Paris, but no number 92"
    );
}

#[test]
fn latitude_and_longitude_are_not_swapped_in_any_format() {
    let expected = LatLng::new(2.3, 48.8).unwrap();
    for (format, file) in [
        (
            "BAN",
            "numero;rep;nom_voie;code_postal;nom_commune;lon;lat\n1;;Rue X;75001;Paris;48.8;2.3\n",
        ),
        (
            "OpenAddresses CSV",
            "LON,LAT,NUMBER,STREET,UNIT,CITY,DISTRICT,REGION,POSTCODE,ID,HASH\n48.8,2.3,1,Rue X,,Paris,,,75001,,a\n",
        ),
        (
            "OpenAddresses GeoJSON",
            "{\"type\":\"Feature\",\"properties\":{\"hash\":\"a\",\"number\":\"1\",\"street\":\"Rue X\",\"unit\":\"\",\"city\":\"Paris\",\"postcode\":\"75001\"},\"geometry\":{\"type\":\"Point\",\"coordinates\":[48.8,2.3]}}\n",
        ),
    ] {
        let found = found(&of("FR", file), "1 rue X, Paris");
        assert_eq!(found.lat_lng, expected, "{format}");
        assert_eq!(found.formatted, "1 Rue X, 75001 Paris", "{format}");
    }
}

#[test]
fn other_countries_write_in_other_orders() {
    let german = "LON,LAT,NUMBER,STREET,CITY,POSTCODE\n13.4,52.5,5,Hauptstraße,Berlin,10115\n13.5,52.6,7a,Straße des 17. Juni,Berlin,10557\n";
    let american =
        "LON,LAT,NUMBER,STREET,CITY,POSTCODE\n-77.03,38.89,12345,N Main St,Springfield,20500\n";
    let british =
        "LON,LAT,NUMBER,STREET,CITY,POSTCODE\n-0.12,51.5,10,Downing Street,London,SW1A 2AA\n";
    for (country, file, text, expected) in [
        (
            "DE",
            german,
            "Hauptstr. 5, 10115 Berlin",
            "Hauptstraße 5, 10115 Berlin",
        ),
        (
            "DE",
            german,
            "haupt strasse 5 berlin",
            "Hauptstraße 5, 10115 Berlin",
        ),
        (
            "DE",
            german,
            "Str. des 17. Juni 7a, Berlin",
            "Straße des 17. Juni 7A, 10557 Berlin",
        ),
        (
            "US",
            american,
            "12345 North Main Street, Springfield 20500",
            "12345 N Main St, Springfield 20500",
        ),
        (
            "GB",
            british,
            "10 Downing St., London SW1A 2AA",
            "10 Downing Street, London SW1A 2AA",
        ),
        (
            "GB",
            british,
            "flat 3, 10 downing street sw1a2aa",
            "10 Downing Street, London SW1A 2AA",
        ),
    ] {
        assert_eq!(search(&of(country, file), text), expected, "{text}");
    }
}

#[test]
fn an_import_counts_what_it_skips_and_why() {
    let file = "numero;rep;nom_voie;code_postal;nom_commune;lon;lat\n\
        1;;Rue X;75001;Paris;2.3;48.8\n\
        1;;Rue X;75001;Paris;2.3;48.8\n\
        2;;;75001;Paris;2.3;48.8\n\
        99999;;Rue X;75001;Paris;2.3;48.8\n\
        3;;Rue X;;;2.3;48.8\n\
        4;;Rue X;75001;Paris;;\n\
        5;;Rue X;75001;Paris;97;2.3\n\
        6;;Rue X;75001;Paris;2.3;97\n";
    let tally = import(&on_disk(), "FR", file.as_bytes());

    assert_eq!(
        tally.to_string(),
        "2 taken, 1 skipped: no street (first in file, line 4), \
         1 skipped: no house number (first in file, line 5), \
         1 skipped: no town (first in file, line 6), \
         1 skipped: no point (first in file, line 7), \
         1 skipped: not on the earth (first in file, line 9), \
         1 skipped: known already (first in file, line 3)"
    );
}

#[test]
fn a_gzip_file_is_read_as_it_is() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, LINE.as_bytes()).unwrap();
    let gazetteer = on_disk();

    let tally = import(&gazetteer, "FR", &gzip.finish().unwrap());

    assert_eq!(tally.taken, 4);
    found(&gazetteer, "2 rue X, Paris");
}

#[test]
fn what_is_no_list_of_addresses_is_refused_and_the_index_stays() {
    let paris = paris();
    for (file, expected) in [
        ("", "file: is empty"),
        ("a;b;c\n1;2;3\n", "there is no lon"),
        (
            "numero;rep;nom_voie;code_postal;nom_commune;lon;lat\n",
            "no address could be taken: 0 taken",
        ),
        (
            "{\"type\":\"Feature\"",
            "no address could be taken: 0 taken, 1 skipped: unreadable (first in file, line 1)",
        ),
        ("\u{1f}\u{8b}", "there is no lon"),
    ] {
        let mut import = Import::begin(paris.path()).unwrap();
        let read = import.read("file", "FR", file.as_bytes());
        let error = match read {
            Ok(()) => import.finish().unwrap_err(),
            Err(error) => error,
        };
        assert!(error.to_string().contains(expected), "{error}");
    }
    found(&paris, "24 rue de la Paix, Paris");
    let left: Vec<_> = fs::read_dir(paris.path().parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with("new"))
        .collect();
    assert_eq!(left, [""; 0]);
}

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

#[test]
fn any_text_is_answered() {
    let paris = paris();
    let texts = "(\\PC| |[0-9]|rue|bis|paris|rivoli|de|,){0,60}";
    let mut runner = proptest::test_runner::TestRunner::default();
    runner
        .run(&texts, |text| {
            paris.search(&Query::new(text)).unwrap();
            Ok(())
        })
        .unwrap();
}
