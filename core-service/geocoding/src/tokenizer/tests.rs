//! Normalization of addresses.

use super::{
    country::COUNTRIES,
    languages::{DUTCH, ENGLISH, FRENCH, GERMAN, ITALIAN, SPANISH},
    *,
};

fn texts(text: &str, country: &str) -> Vec<String> {
    tokenize(text, Country::of(country))
        .into_iter()
        .map(|word| word.text)
        .collect()
}

#[test]
fn spellings_are_normalized_to_the_same_words() {
    for (text, country, expected) in [
        ("24, Rue de la Paix", "FR", vec!["24", "rue", "paix"]),
        ("24 RUE DE LA PAIX", "FR", vec!["24", "rue", "paix"]),
        (
            "av. des Champs-Élysées",
            "FR",
            vec!["avenue", "champs", "elysees"],
        ),
        (
            "Av des champs elysees",
            "FR",
            vec!["avenue", "champs", "elysees"],
        ),
        ("45 rue d'Ulm", "FR", vec!["45", "rue", "ulm"]),
        ("45 rue d’Ulm", "FR", vec!["45", "rue", "ulm"]),
        ("R. St-Honore\u{301}", "FR", vec!["rue", "saint", "honore"]),
        ("Rue du Sacré-Cœur", "FR", vec!["rue", "sacre", "coeur"]),
        ("12A", "FR", vec!["12a"]),
        (" ,;- ", "FR", vec![]),
        ("Hauptstr. 5", "DE", vec!["hauptstrasse", "5"]),
        ("Haupt-Straße 5", "DE", vec!["hauptstrasse", "5"]),
        ("Berliner Str. 5", "DE", vec!["berlinerstrasse", "5"]),
        (
            "Straße des 17. Juni 135",
            "DE",
            vec!["strasse", "17", "juni", "135"],
        ),
        ("King's Rd", "GB", vec!["kings", "road"]),
        ("St James's St", "US", vec!["street", "jamess", "street"]),
        ("Van Wou straat", "NL", vec!["woustraat"]),
        ("C/ Mayor, 3", "ES", vec!["calle", "mayor", "3"]),
        ("V.le Monza", "IT", vec!["v", "monza"]),
    ] {
        assert_eq!(texts(text, country), expected, "{text}");
    }
}

#[test]
fn a_word_has_its_part_and_its_original_form() {
    let words = tokenize("24 Av. Foch, PARIS - 16e", Country::of("FR"));

    let seen: Vec<_> = words
        .iter()
        .map(|word| (word.written.as_str(), word.part))
        .collect();
    assert_eq!(
        seen,
        [("24", 0), ("Av", 0), ("Foch", 0), ("PARIS", 1), ("16e", 2)]
    );
}

#[test]
fn a_long_text_is_truncated() {
    assert_eq!(texts(&"rue ".repeat(10_000), "FR").len(), MAX_WORDS);
}

#[test]
fn the_tables_of_languages_are_normalized() {
    for (code, language) in [
        ("FR", &FRENCH),
        ("GB", &ENGLISH),
        ("DE", &GERMAN),
        ("NL", &DUTCH),
        ("ES", &SPANISH),
        ("IT", &ITALIAN),
    ] {
        let country = Country::of(code);
        let synonyms = language.synonyms.iter().map(|group| &group[0]);
        let lists = [
            &language.street_types,
            &language.titles,
            &language.indoor_words,
            &language.number_suffixes,
        ];
        for word in lists.into_iter().flatten().chain(synonyms) {
            assert_eq!(country.expand(&fold(word)), *word, "{}", country.code);
        }
        for region in &language.regions {
            assert_eq!(key(region, country), **region, "{}", country.code);
        }
    }
    for country in COUNTRIES {
        for name in country.names {
            assert_eq!(key(name, country), *name, "{}", country.code);
        }
    }
}

#[test]
fn a_country_has_names_in_every_language_of_the_platform() {
    for (code, names) in [
        (
            "FR",
            ["France", "France", "Frankreich", "Francia", "Francia"],
        ),
        (
            "DE",
            [
                "Germany",
                "Allemagne",
                "Deutschland",
                "Alemania",
                "Germania",
            ],
        ),
        ("ES", ["Spain", "Espagne", "Spanien", "España", "Spagna"]),
        ("IT", ["Italy", "Italie", "Italien", "Italia", "Italia"]),
        (
            "BE",
            ["Belgium", "Belgique", "Belgien", "Bélgica", "Belgio"],
        ),
        (
            "CH",
            ["Switzerland", "Suisse", "Schweiz", "Suiza", "Svizzera"],
        ),
        (
            "AT",
            ["Austria", "Autriche", "Österreich", "Austria", "Austria"],
        ),
        (
            "LU",
            [
                "Luxembourg",
                "Luxembourg",
                "Luxemburg",
                "Luxemburgo",
                "Lussemburgo",
            ],
        ),
        (
            "NL",
            [
                "Netherlands",
                "Pays-Bas",
                "Niederlande",
                "Países Bajos",
                "Paesi Bassi",
            ],
        ),
        (
            "GB",
            [
                "United Kingdom",
                "Royaume-Uni",
                "Vereinigtes Königreich",
                "Reino Unido",
                "Regno Unito",
            ],
        ),
        ("IE", ["Ireland", "Irlande", "Irland", "Irlanda", "Irlanda"]),
        ("CA", ["Canada", "Canada", "Kanada", "Canadá", "Canada"]),
        (
            "US",
            [
                "United States",
                "États-Unis",
                "Vereinigte Staaten",
                "Estados Unidos",
                "Stati Uniti",
            ],
        ),
    ] {
        let country = Country::of(code);
        for name in names {
            assert!(
                country.is_country_name(&key(name, country)),
                "{code} {name}"
            );
        }
    }
    assert_eq!(COUNTRIES.len(), 13);
}

#[test]
fn an_address_is_formatted_in_the_order_of_its_country() {
    for (country, expected) in [
        ("FR", "24 Rue de la Paix, 75002 Paris"),
        ("DE", "Rue de la Paix 24, 75002 Paris"),
        ("GB", "24 Rue de la Paix, Paris 75002"),
    ] {
        let written = Country::of(country).format("24", "Rue de la Paix", "75002", "Paris");
        assert_eq!(written, expected);
    }
    assert_eq!(
        Country::of("FR").format("", "Rue X", "", "Paris"),
        "Rue X, Paris"
    );
    assert_eq!(Country::of("FR").format("", "", "", "Paris"), "Paris");
}
