//! Italian words of addresses.

use super::language::Language;

pub(super) const ITALIAN: Language = Language {
    same: &[
        &["corso", "cso"],
        &["dottor", "dott"],
        &["largo", "lgo"],
        &["piazza", "pza", "pzza"],
        &["san", "s"],
        &["viale", "vle"],
        &["vicolo", "vlo"],
    ],
    endings: &[],
    glued: &[],
    kinds: &[
        "corso", "largo", "piazza", "piazzale", "strada", "via", "viale", "vicolo",
    ],
    titles: &["dottor", "generale"],
    articles: &[
        "d", "dei", "del", "della", "delle", "dello", "di", "e", "il", "l", "la", "le",
    ],
    number_marks: &["n", "no", "numero"],
    number_suffixes: &["bis", "ter"],
    indoors: &["citofono", "int", "interno", "piano", "scala"],
    floors: &["piano"],
    regions: &[],
    possessive: false,
};
