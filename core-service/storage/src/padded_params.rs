//! Parameter lists in a few lengths. Databases and drivers identify a statement by its text: a text
//! for every list length would be parsed and planned again each time, and would evict all other
//! statements from the caches of prepared statements.

/// The list, extended to the next power of two by repeating its last element, which does not
/// change the meaning of a set.
pub(super) fn padded<T: Clone>(list: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut list: Vec<T> = list.into_iter().collect();
    if let Some(last) = list.last().cloned() {
        list.resize(list.len().next_power_of_two(), last);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_extended_to_a_power_of_two_with_its_last_element() {
        assert!(padded(Vec::<u8>::new()).is_empty());
        assert_eq!(padded([1]), [1]);
        assert_eq!(padded([1, 2, 3]), [1, 2, 3, 3]);
        assert_eq!(padded([1, 2, 3, 4]), [1, 2, 3, 4]);
        assert_eq!(padded(0..100).len(), 128);
    }
}
