//! The supported formats of address files.

use std::fs;

use super::*;

#[test]
fn latitude_and_longitude_are_not_swapped_in_any_format() {
    // Not the point of Paris: a format that guessed which number is the latitude would fail.
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
        let found = found(&gazetteer_of("FR", file), "1 rue X, Paris");
        assert_eq!(found.lat_lng, expected, "{format}");
        assert_eq!(found.formatted, "1 Rue X, 75001 Paris", "{format}");
    }
}

/// As in the BAN for the department of Ain.
#[test]
fn a_postcode_keeps_its_first_zero_in_every_format() {
    for file in [
        "numero;rep;nom_voie;code_postal;nom_commune;lon;lat\n1;;Rue X;01000;Bourg;5.2;46.2\n",
        "LON,LAT,NUMBER,STREET,CITY,POSTCODE\n5.2,46.2,1,Rue X,Bourg,01000\n",
        "{\"properties\":{\"number\":\"1\",\"street\":\"Rue X\",\"city\":\"Bourg\",\"postcode\":\"01000\"},\"geometry\":{\"coordinates\":[5.2,46.2]}}\n",
    ] {
        let found = found(&gazetteer_of("FR", file), "1 rue X, 01000 Bourg");
        assert_eq!(found.formatted, "1 Rue X, 01000 Bourg", "{file}");
    }
}

#[test]
fn addresses_have_the_order_of_their_country() {
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
        assert_eq!(
            search(&gazetteer_of(country, file), text),
            expected,
            "{text}"
        );
    }
}

#[test]
fn an_import_counts_skipped_lines_by_reason() {
    let file = "numero;rep;nom_voie;code_postal;nom_commune;lon;lat\n\
        1;;Rue X;75001;Paris;2.3;48.8\n\
        1;;Rue X;75001;Paris;2.3;48.8\n\
        2;;;75001;Paris;2.3;48.8\n\
        99999;;Rue X;75001;Paris;2.3;48.8\n\
        3;;Rue X;;;2.3;48.8\n\
        4;;Rue X;75001;Paris;;\n\
        5;;Rue X;75001;Paris;97;2.3\n\
        6;;Rue X;75001;Paris;2.3;97\n";
    let stats = import(&empty(), "FR", file.as_bytes());

    assert_eq!(
        stats.to_string(),
        "2 imported, 1 skipped: no street (first in file, line 4), \
         1 skipped: no house number (first in file, line 5), \
         1 skipped: no town or postcode (first in file, line 6), \
         1 skipped: no point (first in file, line 7), \
         1 skipped: point out of range (first in file, line 9), \
         1 skipped: duplicate (first in file, line 3)"
    );
}

#[test]
fn a_gzip_file_is_decompressed() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, STREET_WITH_GAPS.as_bytes()).unwrap();
    let gazetteer = empty();

    let stats = import(&gazetteer, "FR", &gzip.finish().unwrap());

    assert_eq!(stats.imported, 4);
    found(&gazetteer, "2 rue X, Paris");
}

#[test]
fn the_addresses_of_a_street_need_not_follow_each_other() {
    let gazetteer = gazetteer_of(
        "FR",
        "lon,lat,number,street,city,postcode\n\
         2.331,48.871,1,Rue Alpha,Paris,75001\n\
         2.341,48.861,1,Rue Beta,Paris,75003\n\
         2.332,48.872,3,Rue Alpha,Paris,75002\n\
         2.342,48.862,3,Rue Beta,Paris,75003\n",
    );

    for text in [
        "1 rue Alpha, 75001 Paris",
        "3 rue Alpha, 75002 Paris",
        "3 rue Beta, 75003 Paris",
        // Between two houses of one street.
        "2 rue Alpha, Paris",
    ] {
        found(&gazetteer, text);
    }
}

#[test]
fn an_invalid_file_is_rejected_and_keeps_the_index() {
    let paris = paris();
    for (file, expected) in [
        ("", "file is empty"),
        ("a;b;c\n1;2;3\n", "the column lon is missing"),
        (
            "numero;rep;nom_voie;code_postal;nom_commune;lon;lat\n",
            "no address imported: 0 imported",
        ),
        (
            "{\"type\":\"Feature\"",
            "no address imported: 0 imported, 1 skipped: invalid (first in file, line 1)",
        ),
        // Not gzip: U+008B is two bytes in UTF-8.
        ("\u{1f}\u{8b}", "the column lon is missing"),
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
