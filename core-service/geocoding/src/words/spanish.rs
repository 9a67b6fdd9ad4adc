//! Spanish words of addresses.

use super::language::Language;

pub(super) const SPANISH: Language = Language {
    same: &[
        &["avenida", "av", "avda", "avd"],
        &["calle", "c", "cl"],
        &["carretera", "ctra"],
        &["doctor", "dr"],
        &["general", "gral"],
        &["paseo", "po", "pso"],
        &["plaza", "pl", "pza"],
        &["ronda", "rda"],
        &["santa", "sta"],
        &["santo", "sto"],
    ],
    endings: &[],
    glued: &[],
    kinds: &[
        "avenida",
        "calle",
        "camino",
        "carretera",
        "paseo",
        "plaza",
        "ronda",
        "travesia",
    ],
    titles: &["doctor", "general"],
    articles: &["de", "del", "el", "la", "las", "los", "y"],
    number_marks: &["n", "no", "num", "numero"],
    number_suffixes: &["bis"],
    indoors: &[
        "bajo", "dcha", "escalera", "izda", "izq", "piso", "planta", "portal", "puerta",
    ],
    floors: &["piso", "planta"],
    regions: &[],
    possessive: false,
};
