//! Names of towns in other languages: address data has the local ones.

use std::{collections::HashMap, sync::LazyLock};

/// Names of one town in its own languages and in French, English, German, Dutch, Spanish and Italian,
/// folded as by [`super::fold`], with and without articles. Only of towns whose names differ in more than accents.
const NAMES: &[&str] = &[
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

/// The row of each name.
static ROWS: LazyLock<HashMap<&str, usize>> = LazyLock::new(|| {
    let rows = NAMES.iter().enumerate();
    rows.flat_map(|(row, names)| names.split(", ").map(move |name| (name, row)))
        .collect()
});

/// Whether two normalized names are of one town in different languages.
pub(super) fn are_of_one_town(name: &str, other: &str) -> bool {
    let row = ROWS.get(name);
    row.is_some() && row == ROWS.get(other)
}
