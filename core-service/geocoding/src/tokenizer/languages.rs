//! The meaning of words in addresses, by language, and the names of towns in several: address data has the local
//! ones.

use std::{collections::HashMap, sync::LazyLock};

/// The word tables of a language; all entries are folded as by [`super::fold`].
#[derive(Default)]
pub(super) struct Language {
    /// Groups of synonyms, mostly abbreviations; the first is the normalized form.
    pub(super) synonyms: Vec<Vec<&'static str>>,
    /// Abbreviated suffixes of words: `hauptstr` is `hauptstrasse`.
    pub(super) suffixes: Vec<(&'static str, &'static str)>,
    /// Street types that may form one word with the name.
    pub(super) compound_street_types: Vec<&'static str>,
    /// Street types that are separate words.
    pub(super) street_types: Vec<&'static str>,
    /// Optional titles before a person's name.
    pub(super) titles: Vec<&'static str>,
    /// Often omitted, so ignored in comparisons.
    pub(super) articles: Vec<&'static str>,
    /// Words that introduce a house number.
    pub(super) number_prefixes: Vec<&'static str>,
    /// Words that extend a house number, in addition to single letters.
    pub(super) number_suffixes: Vec<&'static str>,
    /// Words that introduce what does not help to find the building: a unit inside it, such as an
    /// apartment or a floor, and directions for the post (`cedex`) or the courier (`code`).
    pub(super) indoor_words: Vec<&'static str>,
    /// Those of `indoor_words` that follow their number: `3e étage`.
    pub(super) floor_words: Vec<&'static str>,
    /// Names of regions, which may follow the town.
    pub(super) regions: Vec<&'static str>,
    /// Whether `king's` is one word.
    pub(super) possessive: bool,
}

fn words(text: &'static str) -> Vec<&'static str> {
    text.split(' ').collect()
}

fn phrases(text: &'static str) -> Vec<&'static str> {
    text.split(", ").collect()
}

fn groups(text: &'static str) -> Vec<Vec<&'static str>> {
    text.split(", ").map(words).collect()
}

pub(super) static FRENCH: LazyLock<Language> = LazyLock::new(|| Language {
    synonyms: groups(
        "allee all, avenue av ave, boulevard bd bld blvd boul bvd, carrefour carr, \
         chaussee chs, chemin che chem, colonel col, commandant cdt, cours crs, docteur dr, \
         esplanade esp, faubourg fbg fg, general gal gen, impasse imp, lotissement lot, \
         marechal mal, passage pass, place pl, porte pte, president pdt pres, \
         professeur pr prof, quai q, rue r, route rte, saint st, sainte ste, square sq, \
         villa vla",
    ),
    street_types: words(
        "allee avenue boulevard carrefour chaussee chemin cite cours esplanade impasse \
         lotissement parvis passage place promenade quai rond route rue ruelle sentier square \
         villa voie",
    ),
    titles: words(
        "abbe amiral capitaine colonel commandant docteur general lieutenant marechal president \
         professeur",
    ),
    articles: words("d de des du l la le les et aux au"),
    number_prefixes: words("n no num numero"),
    number_suffixes: words("bis ter quater quinquies"),
    indoor_words: words(
        "acces apt app appartement appt arrondissement bat batiment bp bureau cedex chez code \
         cour cs digicode droite entree esc escalier etage gauche hall interphone niveau porte \
         rdc residence rez sonner sonnette sonnez",
    ),
    floor_words: words("etage"),
    regions: phrases(
        "auvergne rhone alpes, bourgogne franche comte, bretagne, centre val loire, corse, \
         grand est, hauts france, idf, ile france, normandie, nouvelle aquitaine, occitanie, \
         paca, pays loire, provence alpes cote azur",
    ),
    ..Language::default()
});

pub(super) static ENGLISH: LazyLock<Language> = LazyLock::new(|| Language {
    // `St` is `saint` or `street`; both become `street`, in queries and in data.
    synonyms: groups(
        "avenue ave av, boulevard blvd bd, circle cir, close cl, court ct, crescent cres, \
         drive dr, east e, gardens gdns, grove gr, highway hwy, lane ln, mount mt, north n, \
         parkway pkwy, place pl, road rd, south s, square sq, street saint st str, \
         terrace ter terr, west w",
    ),
    street_types: words(
        "avenue boulevard circle close court crescent drive gardens grove highway lane mews \
         parade parkway place road row square street terrace walk way yard",
    ),
    titles: words("doctor general president sir"),
    articles: words("the of and"),
    number_prefixes: words("no number nr"),
    number_suffixes: words("half"),
    indoor_words: words("apartment apt basement building door entrance flat floor room suite unit"),
    floor_words: words("floor"),
    regions: phrases("england, northern ireland, scotland, wales"),
    possessive: true,
    ..Language::default()
});

pub(super) static GERMAN: LazyLock<Language> = LazyLock::new(|| Language {
    synonyms: groups("doktor dr, platz pl, professor prof, sankt st, strasse str"),
    suffixes: vec![("str", "strasse"), ("pl", "platz")],
    compound_street_types: words("allee chaussee damm gasse platz ring strasse ufer weg"),
    street_types: words("allee gasse platz ring strasse ufer weg"),
    titles: words("doktor general professor"),
    articles: words("der die das des dem den und"),
    number_prefixes: words("hausnummer nr nummer"),
    indoor_words: words(
        "aufgang eg etage hinterhaus hinterhof og stiege stock stockwerk tur vorderhaus whg \
         wohnung",
    ),
    floor_words: words("etage og stock stockwerk"),
    ..Language::default()
});

pub(super) static DUTCH: LazyLock<Language> = LazyLock::new(|| Language {
    synonyms: groups(
        "burgemeester burg, doctor dr, laan ln, plein pl, professor prof, sint st, straat str",
    ),
    suffixes: vec![("str", "straat")],
    compound_street_types: words("gracht kade laan plein straat weg"),
    street_types: words("gracht kade laan plein straat weg"),
    titles: words("burgemeester doctor professor"),
    articles: words("de den der het t van ten ter"),
    number_prefixes: words("nr nummer"),
    number_suffixes: words("bis"),
    indoor_words: words("appartement apt bus etage verdieping"),
    floor_words: words("etage verdieping"),
    ..Language::default()
});

pub(super) static SPANISH: LazyLock<Language> = LazyLock::new(|| Language {
    synonyms: groups(
        "avenida av avda avd, calle c cl, carretera ctra, doctor dr, general gral, \
         paseo po pso, plaza pl pza, ronda rda, santa sta, santo sto",
    ),
    street_types: words("avenida calle camino carretera paseo plaza ronda travesia"),
    titles: words("doctor general"),
    articles: words("de del el la las los y"),
    number_prefixes: words("n no num numero"),
    number_suffixes: words("bis"),
    indoor_words: words("bajo dcha escalera izda izq piso planta portal puerta"),
    floor_words: words("piso planta"),
    ..Language::default()
});

pub(super) static ITALIAN: LazyLock<Language> = LazyLock::new(|| Language {
    synonyms: groups(
        "corso cso, dottor dott, largo lgo, piazza pza pzza, san s, viale vle, vicolo vlo",
    ),
    street_types: words("corso largo piazza piazzale strada via viale vicolo"),
    titles: words("dottor generale"),
    articles: words("d dei del della delle dello di e il l la le"),
    number_prefixes: words("n no numero"),
    number_suffixes: words("bis ter"),
    indoor_words: words("citofono int interno piano scala"),
    floor_words: words("piano"),
    ..Language::default()
});

/// Names of one town in its own languages and in French, English, German, Dutch, Spanish and Italian,
/// folded as by [`super::fold`], with and without articles. Only of towns whose names differ in more than accents.
const TOWNS: &[&str] = &[
    "aachen, aix chapelle, aix la chapelle, aken, aquisgran, aquisgrana",
    "antwerpen, anvers, antwerp, amberes, anversa",
    "basel, bale, basle, basilea, bazel",
    "bern, berne, berna",
    "brugge, bruges, brujas",
    "bruxelles, brussel, brussels, bruselas",
    "haag, den haag, gravenhage, s gravenhage, hague, the hague, haye, la haye, haya, la haya",
    "dunkerque, dunkirk, duinkerke, dunkirchen",
    "firenze, florence, florenz, florencia",
    "geneve, geneva, genf, ginebra, ginevra",
    "genova, genoa, genes, genua",
    "gent, gand, ghent, gante",
    "koln, koeln, cologne, colonia, keulen",
    "kortrijk, courtrai",
    "leuven, louvain, lovaina, lowen",
    "liege, luik, luttich, lieja, liegi",
    "lille, rijsel",
    "livorno, leghorn",
    "london, londres, londra, londen",
    "luzern, lucerne, lucerna",
    "lyon, lyons, lione",
    "mainz, mayence, maguncia, magonza",
    "mantova, mantua, mantoue",
    "marseille, marseilles, marsiglia, marsella",
    "mechelen, malines, mechlin",
    "milano, milan, mailand",
    "mons, bergen",
    "munchen, muenchen, munich, monaco baviera, monaco di baviera",
    "namur, namen",
    "napoli, naples, neapel, napoles",
    "nice, nizza, niza",
    "nurnberg, nuernberg, nuremberg, norimberga",
    "oostende, ostende, ostend",
    "padova, padua, padoue",
    "paris, parigi, parijs",
    "regensburg, ratisbonne, ratisbon, ratisbona",
    "roma, rome, rom",
    "sevilla, seville, siviglia",
    "strasbourg, strassburg, straatsburg, estrasburgo, strasburgo",
    "torino, turin",
    "tournai, doornik",
    "trier, treves, treveri, treviri",
    "venezia, venice, venise, venedig, venecia",
    "wien, vienna, vienne, viena",
    "zaragoza, saragosse, saragossa",
    "zurich, zuerich, zurigo",
];

/// The row of [`TOWNS`] with each name.
static TOWN_ROWS: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| {
    let rows = TOWNS.iter().enumerate();
    rows.flat_map(|(row, names)| names.split(", ").map(move |name| (name, row)))
        .collect()
});

/// Whether two normalized names are of one town in different languages.
pub(super) fn are_of_one_town(name: &str, other: &str) -> bool {
    let row = TOWN_ROWS.get(name);
    row.is_some() && row == TOWN_ROWS.get(other)
}
