//! German words of addresses.

use super::language::Language;

pub(super) const GERMAN: Language = Language {
    same: &[
        &["doktor", "dr"],
        &["platz", "pl"],
        &["professor", "prof"],
        &["sankt", "st"],
        &["strasse", "str"],
    ],
    endings: &[("str", "strasse"), ("pl", "platz")],
    glued: &[
        "allee", "chaussee", "damm", "gasse", "platz", "ring", "strasse", "ufer", "weg",
    ],
    kinds: &["allee", "gasse", "platz", "ring", "strasse", "ufer", "weg"],
    titles: &["doktor", "general", "professor"],
    articles: &["der", "die", "das", "des", "dem", "den", "und"],
    number_marks: &["hausnummer", "nr", "nummer"],
    number_suffixes: &[],
    indoors: &[
        "aufgang",
        "eg",
        "etage",
        "hinterhaus",
        "hinterhof",
        "og",
        "stiege",
        "stock",
        "stockwerk",
        "tur",
        "vorderhaus",
        "whg",
        "wohnung",
    ],
    floors: &["etage", "og", "stock", "stockwerk"],
    regions: &[],
    possessive: false,
};
