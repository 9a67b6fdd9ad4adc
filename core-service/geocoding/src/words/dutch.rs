//! Dutch words of addresses.

use super::language::Language;

pub(super) const DUTCH: Language = Language {
    same: &[
        &["burgemeester", "burg"],
        &["doctor", "dr"],
        &["laan", "ln"],
        &["plein", "pl"],
        &["professor", "prof"],
        &["sint", "st"],
        &["straat", "str"],
    ],
    endings: &[("str", "straat")],
    glued: &["gracht", "kade", "laan", "plein", "straat", "weg"],
    kinds: &["gracht", "kade", "laan", "plein", "straat", "weg"],
    titles: &["burgemeester", "doctor", "professor"],
    articles: &["de", "den", "der", "het", "t", "van", "ten", "ter"],
    number_marks: &["nr", "nummer"],
    number_suffixes: &["bis"],
    indoors: &["appartement", "apt", "bus", "etage", "verdieping"],
    floors: &["etage", "verdieping"],
    regions: &[],
    possessive: false,
};
