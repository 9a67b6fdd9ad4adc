//! Compares postcodes.

use crate::tokenizer::fold;

/// Whether a written postcode is a place's, or a less exact one: `75000` for all districts of
/// Paris, another code of the same first half (`SW1A 2AB`).
pub(super) fn is_same_postcode(written: &str, known: &str) -> bool {
    const DISTRICT_DIGITS: usize = 2;
    if fold(written) == fold(known) {
        return true;
    }
    let has_letters = known.contains(|c: char| c.is_alphabetic());
    if let (true, Some((area, _))) = (has_letters, known.split_once(' ')) {
        let written = fold(written);
        return written.starts_with(&fold(area)) && written.len() == fold(known).len();
    }
    let prefix = known.len().saturating_sub(DISTRICT_DIGITS);
    written.ends_with("000") && known.get(..prefix) == written.get(..prefix)
}

/// Whether two postcodes begin alike.
pub(super) fn is_same_region(written: &str, known: &str) -> bool {
    const REGION_PREFIX: usize = 2;
    let region = |code: &str| fold(code).chars().take(REGION_PREFIX).collect::<String>();
    region(written) == region(known)
}

/// Letters as `a` and digits as `9`: postcodes of a country have few shapes.
pub(super) fn shape(code: &str) -> String {
    let kind = |c: char| if c.is_ascii_digit() { '9' } else { 'a' };
    fold(code).chars().map(kind).collect()
}
