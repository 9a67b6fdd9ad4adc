//! Lists in statements, at few lengths. A database and its driver know a statement by its text:
//! with one for every length of a list, each would be read and planned anew, and they would push
//! all others out of the caches of prepared statements.

/// A list made as long as the next power of two: its last is repeated, which says the same again.
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
    fn a_list_is_as_long_as_a_power_of_two_and_says_nothing_new() {
        assert!(padded(Vec::<u8>::new()).is_empty());
        assert_eq!(padded([1]), [1]);
        assert_eq!(padded([1, 2, 3]), [1, 2, 3, 3]);
        assert_eq!(padded([1, 2, 3, 4]), [1, 2, 3, 4]);
        assert_eq!(padded(0..100).len(), 128);
    }
}
