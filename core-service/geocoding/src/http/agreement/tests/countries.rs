//! Addresses of many countries, as tables.

use super::*;

/// Compares a text with a place: `NUMBER STREET | POSTCODE | TOWN | COUNTRY | AREA | REGION`.
fn agreement(line: &str, text: &str) -> Agreement {
    let parts: Vec<_> = line.split('|').map(str::trim).collect();
    let [house, postcode, town, country, area, region] = parts[..] else {
        panic!("{line}");
    };
    let (number, street) = house.split_once(' ').unwrap();
    let names = |name: &str| {
        let names = [name.to_owned()].into_iter();
        names.filter(|name| !name.is_empty()).collect()
    };
    let place = Place {
        number: Some(number.to_owned()),
        street: Some(street.to_owned()),
        areas: names(area),
        regions: names(region),
        ..Place::default()
    };
    check(text, &geocode_match(house, postcode, town, country), &place)
}

/// The second name is requested only if the first is no town.
fn either_town(postcode: &str, towns: [&str; 2]) -> Agreement {
    Agreement::UnknownTown {
        postcode: Some(postcode.to_owned()),
        towns: towns.map(str::to_owned).into(),
    }
}

#[test]
fn other_words_of_an_address_are_no_town() {
    for (place, text) in [
        (
            "3 Nørregade | 1165 | København | DK |  | Danmark",
            "Nørregade 3, 3. sal, 1165 København K",
        ),
        (
            "3 Nørregade | 1165 | København | DK |  | Danmark",
            "Nørregade 3, 1165 København, Danmark",
        ),
        (
            "5 Drottninggatan | 111 22 | Stockholm | SE | Norrmalm | Sverige",
            "Drottninggatan 5, lgh 1102, 111 22 Stockholm",
        ),
        (
            "2 High Street | BR1 1AA | London | GB | Bromley | England",
            "2 High Street, Bromley, Kent BR1 1AA",
        ),
        (
            "12 Avenue du 8 Mai 1945 | 6000 | Charleroi | BE |  | Hainaut",
            "Avenue du 8 Mai 1945 12, Charleroi",
        ),
        (
            "9 Rue de la Mairie | 49120 | Chemillé-en-Anjou | FR | La Tourlandry | ",
            "9 Rue de la Mairie, 49120 La Tourlandry",
        ),
        (
            "7 Nádor utca | 1051 | Budapest | HU |  | ",
            "1051 Budapest, Nádor utca 7, 2. emelet",
        ),
        (
            "1 Rue de Paris | 75012 | Paris | FR |  | ",
            "1 rue de Paris, 75012 Paris",
        ),
        (
            "1 George Street | 2000 | Sydney | AU |  | AU-NSW",
            "Level 5, 1 George Street, Sydney NSW 2000, Australia",
        ),
        (
            "10 Karl Johans gate | 0154 | Oslo | NO |  | Norge",
            "Karl Johans gate 10, oppgang B, 0154 Oslo",
        ),
        (
            "4 Rua Augusta | 1100-053 | Lisboa | PT |  | ",
            "Rua Augusta 4, 2.º Dto, 1100-053 Lisboa",
        ),
        (
            "15 Nowy Świat | 00-029 | Warszawa | PL |  | ",
            "Nowy Świat 15 m. 4, 00-029 Warszawa",
        ),
        (
            "5 Zeil | 60313 | Frankfurt am Main | DE |  | Hessen",
            "Zeil 5, 60313 Frankfurt",
        ),
        (
            "8 Langestraat | 3811 | Amersfoort | NL |  | Utrecht",
            "Langestraat 8, 3811, Amersfoort, Utrecht",
        ),
        (
            "1 Avenue Louise | 1050 | Ixelles - Elsene | BE |  | Région de Bruxelles-Capitale",
            "Avenue Louise 1, 1050 Bruxelles",
        ),
    ] {
        assert_eq!(agreement(place, text), Agreement::Yes, "{text}");
    }
}

#[test]
fn another_town_is_recognized_in_any_country() {
    for (place, text, expected) in [
        (
            "3 Nørregade | 1165 | København | DK |  | Danmark",
            "Nørregade 3, 3. sal, 1165 Odense, Danmark",
            either_town("1165", ["Odense", "sal"]),
        ),
        (
            "5 Drottninggatan | 111 22 | Stockholm | SE |  | ",
            "Drottninggatan 5, lgh 1102, 111 22 Malmö",
            either_town("111 22", ["Malmö", "lgh"]),
        ),
        (
            "5 Drottninggatan | 111 22 | Stockholm | SE |  | ",
            "Drottninggatan 5, 211 41 Malmö",
            elsewhere("211 41 Malmö"),
        ),
        (
            "12 Avenue du 8 Mai 1945 | 6000 | Charleroi | BE |  | ",
            "Avenue du 8 Mai 1945 12, Namur",
            unknown_towns(&["Namur"]),
        ),
        (
            "8 Langestraat | 3811 | Amersfoort | NL |  | Utrecht",
            "Langestraat 8, 3811 Utrecht",
            unknown_town("3811", "Utrecht"),
        ),
        (
            "1 George Street | 2000 | Sydney | AU |  | AU-NSW",
            "1 George Street, Melbourne VIC 2000",
            unknown_town("2000", "Melbourne VIC"),
        ),
        (
            "48 Rue de Paris | 75004 | Paris | FR |  | ",
            "Café Paris, 48 rue de Paris, 75004 Lyon",
            unknown_town("75004", "Lyon"),
        ),
        (
            "10 Karl Johans gate | 0154 | Oslo | NO |  | Norge",
            "Karl Johans gate 10, 5003 Oslo",
            contradiction("5003", "Oslo"),
        ),
        (
            "1 Avenue Louise | 1060 | Saint-Gilles | BE |  | Région de Bruxelles-Capitale",
            "Avenue Louise 1, 1050 Bruxelles",
            elsewhere("1050 Bruxelles"),
        ),
        (
            "5 Polna | 98-100 | Kamionki | PL |  | ",
            "Polna 5, 62-023 Kamionki",
            contradiction("62 023", "Kamionki"),
        ),
        (
            "1 Kerkstraat | 3811CV | Amersfoort | NL |  | Utrecht",
            "Kerkstraat 1, 1012 AB",
            elsewhere("1012 AB"),
        ),
        (
            "10 High Street | E1 6AN | London | GB |  | England",
            "10 High Street, London E17 7JN",
            contradiction("E17 7JN", "London"),
        ),
        (
            "10 High Street | E1 6AN | London | GB |  | England",
            "10 High Street, London SW1A2AA",
            contradiction("SW1A2AA", "London"),
        ),
        (
            "10 Main Street | D02 X285 | Dublin | IE |  | ",
            "10 Main Street, Dublin A94 1F2H",
            contradiction("A94 1F2H", "Dublin"),
        ),
        (
            "5 Calle Mayor | 08911 | Badalona | ES |  | Barcelona",
            "Calle Mayor 5, Barcelona",
            unknown_towns(&["Barcelona"]),
        ),
        (
            "12 Rue de Paris | 93330 | Neuilly-sur-Marne | FR |  | Seine-Saint-Denis",
            "12 Rue de Paris, Neuilly-sur-Seine",
            unknown_towns(&["Neuilly sur Seine"]),
        ),
        (
            "12 Rue de Paris | 69001 | Lyon | FR |  | ",
            "12 Rue de Lyon, Paris",
            unknown_towns(&["Paris"]),
        ),
        (
            "10 Leeds Street | E1 6AN | London | GB |  | ",
            "10 London Street, Leeds",
            unknown_towns(&["Leeds"]),
        ),
    ] {
        assert_eq!(agreement(place, text), expected, "{text}");
    }
}

#[test]
fn a_postcode_before_the_house_number_contradicts_another_town() {
    let place = "48 Rue de Rivoli | 75004 | Paris | FR |  | Île-de-France";
    let text = "69001 48 Rue de Rivoli, Paris";
    assert_eq!(agreement(place, text), contradiction("69001", "Paris"));
}

#[test]
fn the_digits_of_a_dutch_postcode_contradict_another_town() {
    for (postcode, text) in [
        ("9999", "Damrak 1, 9999 Amsterdam"),
        ("9999 XX", "Damrak 1, 9999 XX Amsterdam"),
    ] {
        let place = "1 Damrak | 1012 AB | Amsterdam | NL |  | Noord-Holland";
        assert_eq!(
            agreement(place, text),
            contradiction(postcode, "Amsterdam"),
            "{text}"
        );
    }
}

#[test]
fn a_number_that_is_no_postcode_of_a_place_is_no_contradiction() {
    for (place, text) in [
        (
            "1 Damrak | 1012 AB | Amsterdam | NL |  | Noord-Holland",
            "Damrak 1, 1012 Amsterdam",
        ),
        (
            "1 Damrak | 1012AB | Amsterdam | NL |  | Noord-Holland",
            "Damrak 1, 1012",
        ),
        (
            "1 Damrak | 1012 AB | Amsterdam | NL |  | Noord-Holland",
            "Damrak 1 9999 Amsterdam",
        ),
        (
            "1 Damrak | 1012 | Amsterdam | NL |  | Noord-Holland",
            "Damrak 1, 1012 AB Amsterdam",
        ),
        (
            "1 Avenue Foch | 75116 | Paris | FR |  | Île-de-France",
            "1 Avenue Foch, 75773 PARIS CEDEX 16",
        ),
        (
            "2 Place Bellecour | 69002 | Lyon | FR |  | Rhône",
            "2 Place Bellecour, 69288 Lyon Cedex 02",
        ),
        (
            "1 George Street | 2000 | Sydney | AU |  | AU-NSW",
            "1102/1 George Street, Sydney",
        ),
        (
            "1 George Street | 2000 | Sydney | AU |  | AU-NSW",
            "Unit 1102, 1 George Street, Sydney NSW 2000",
        ),
        (
            "350 Main Street | 02108 | Boston | US |  | Massachusetts",
            "350 Main St Apt 4 Boston MA",
        ),
    ] {
        assert_eq!(agreement(place, text), Agreement::Yes, "{text}");
    }
}

#[test]
fn a_town_after_directions_in_the_building_is_compared() {
    const CAMBRIDGE: &str = "350 Main Street | 02142 | Cambridge | US |  | Massachusetts";
    for text in [
        "350 Main St Apt 4 Boston MA",
        "350 Main St, Apt 4 Boston MA",
        "350 Main St Apt 4B Boston",
        "350 Main St 2nd Floor Boston MA",
    ] {
        let agreement = agreement(CAMBRIDGE, text);
        assert_eq!(agreement, unknown_towns(&["Boston"]), "{text}");
    }
}

#[test]
fn a_town_before_another_street_is_compared() {
    for (place, text, town) in [
        (
            "12 Rue de Paris | 69001 | Lyon | FR |  | ",
            "Paris, 12 Rue de Lyon",
            "Paris",
        ),
        (
            "10 Leeds Street | E1 6AN | London | GB |  | ",
            "Leeds, 10 London Street",
            "Leeds",
        ),
    ] {
        assert_eq!(agreement(place, text), unknown_towns(&[town]), "{text}");
    }
}

#[test]
fn a_cedex_code_of_another_department_or_town_or_without_cedex_is_rejected() {
    const LYON: &str = "2 Place Bellecour | 69002 | Lyon | FR |  | Rhône";
    for (text, expected) in [
        (
            "2 Place Bellecour, 75773 Lyon Cedex 16",
            contradiction("75773", "Lyon"),
        ),
        (
            "2 Place Bellecour, 75773 Paris Cedex 16",
            elsewhere("75773 Paris"),
        ),
        (
            "2 Place Bellecour, 69288 Lyon",
            contradiction("69288", "Lyon"),
        ),
    ] {
        assert_eq!(agreement(LYON, text), expected, "{text}");
    }
}
