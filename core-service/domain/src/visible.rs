//! Characters that have no visible form: those without a meaning in what programs read, and those that change how
//! others are shown.

use std::borrow::Cow;

/// The text without characters that are displayed as nothing: marks of direction, as copied from a
/// list of contacts, zero-width spaces, soft hyphens, selectors of a form.
pub fn visible(text: &str) -> Cow<'_, str> {
    // Most texts are, and are read once per request.
    if text.is_ascii() || !text.contains(is_ignorable) {
        text.into()
    } else {
        text.replace(is_ignorable, "").into()
    }
}

/// Controls, and the overrides of Unicode's bidirectional algorithm, which show letters in another order than they
/// are stored. Its embeddings and isolates, which programs put around the parts of a message, show each in its own.
pub fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202d}' | '\u{202e}')
}

/// The first and last characters of the ranges with Unicode's property `Default_Ignorable_Code_Point`,
/// without the Hangul fillers, which are displayed as blanks.
const IGNORABLE: [u32; 28] = [
    0xAD, 0xAD, 0x34F, 0x34F, 0x61C, 0x61C, 0x17B4, 0x17B5, 0x180B, 0x180F, 0x200B, 0x200F, 0x202A,
    0x202E, 0x2060, 0x206F, 0xFE00, 0xFE0F, 0xFEFF, 0xFEFF, 0xFFF0, 0xFFF8, 0x1BCA0, 0x1BCA3,
    0x1D173, 0x1D17A, 0xE0000, 0xE0FFF,
];

fn is_ignorable(c: char) -> bool {
    let (ranges, _) = IGNORABLE.as_chunks::<2>();
    let is_in = |[first, last]: &[u32; 2]| (*first..=*last).contains(&u32::from(c));
    ranges.iter().any(is_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_characters_without_a_visible_form_are_dropped() {
        for c in "\u{ad}\u{61c}\u{200b}\u{200e}\u{200f}\u{202a}\u{202c}\u{202d}\u{2060}\u{2066}\u{2069}\u{fe0d}\u{feff}\u{e0001}".chars() {
            assert_eq!(visible(&format!("{c}a {c}{c}b{c}")), "a b", "{}", c.escape_unicode());
        }
        for text in ["", "a\u{a0}b\u{202f}c\u{3000}d\n", "é e\u{301} ñ 中 🛵"] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
        }
    }
}
