//! Finds names in successive words.

/// Whether a word is longer than an abbreviation such as that of a state.
pub(super) fn is_significant(key: &str) -> bool {
    key.chars().count() > 2
}

pub(super) fn contains<A: PartialEq<B>, B>(words: &[A], name: &[B]) -> bool {
    words
        .windows(name.len().max(1))
        .any(|window| window == name)
}

/// Whether the words are a sequence of whole names. Parts of several names do not count:
/// `Neuilly-sur-Seine` is not covered by `Neuilly-sur-Marne` and `Seine-Saint-Denis`.
pub(super) fn is_covered(words: &[&str], names: &[Vec<String>]) -> bool {
    let mut is_end = vec![true];
    for end in 1..=words.len() {
        let is_last = |name: &Vec<String>| {
            end.checked_sub(name.len())
                .is_some_and(|start| is_end[start] && words[start..end] == name[..])
        };
        is_end.push(names.iter().any(is_last));
    }
    is_end[words.len()]
}
