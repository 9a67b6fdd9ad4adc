//! Texts that people have written.

/// A text that cannot turn those around it: without the controls of Unicode's bidirectional algorithm, and others.
pub fn without_controls(text: &str) -> String {
    let is_control = |c: char| {
        let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        turns || c.is_control()
    };
    text.replace(is_control, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_a_person_has_no_controls() {
        let text = "a<b>&\"\u{202e}c\u{2066}\n";
        assert_eq!(without_controls(text), "a<b>&\"c");
    }
}
