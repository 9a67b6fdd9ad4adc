//! Core names fields as its messages do; the client is told of them in its own words.

use std::collections::{HashMap, HashSet};

/// How the client of one request calls the fields of the request message.
#[derive(Debug, Default)]
pub(crate) struct ClientWords {
    /// Path of a field → the member the client used for it, where there are several.
    chosen: HashMap<String, &'static str>,
    /// Paths that are the client's own already.
    verbatim: HashSet<String>,
}

impl ClientWords {
    /// The client used this member for a field.
    pub(crate) fn choose(&mut self, field: String, member: &'static str) {
        self.chosen.insert(field, member);
    }

    /// A path that stays as it is.
    pub(crate) fn keep(&mut self, path: String) {
        self.verbatim.insert(path);
    }

    /// A field's path in the client's words: `dropoff.address.lat_lng` →
    /// `dropoff.address.latLng`, or `….geo` if that is what the client used.
    pub(crate) fn path(&self, field: &str) -> String {
        if self.verbatim.contains(field) {
            return field.to_owned();
        }
        let mut path = String::with_capacity(field.len());
        let mut end = 0;
        for segment in field.split('.') {
            let start = end;
            end += segment.len();
            let (name, index) = segment.split_at(segment.find('[').unwrap_or(segment.len()));
            let named = &field[..start + name.len()];
            match self.chosen.get(named) {
                Some(member) => path.push_str(member),
                None => push_member(&mut path, name),
            }
            path.push_str(index);
            if name == "metadata" {
                // What follows are the client's own keys.
                path.push_str(&field[end..]);
                return path;
            }
            if end < field.len() {
                path.push('.');
                end += 1;
            }
        }
        path
    }
}

/// The member for a field, as the API names it.
fn push_member(path: &mut String, field: &str) {
    if field == "place_name" {
        path.push_str("name");
        return;
    }
    let mut words = field.split('_');
    path.push_str(words.next().unwrap_or_default());
    for word in words {
        let mut letters = word.chars();
        path.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        path.push_str(letters.as_str());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_named_as_the_api_names_them() {
        let words = ClientWords::default();

        for (field, path) in [
            ("", ""),
            ("dropoff", "dropoff"),
            ("dropoff.time_slot", "dropoff.timeSlot"),
            (
                "pickup.address.street_address",
                "pickup.address.streetAddress",
            ),
            ("pickup.address.place_name", "pickup.address.name"),
            (
                "dropoff.packages[2].quantity",
                "dropoff.packages[2].quantity",
            ),
            (
                "dropoff.metadata.my_own.key_1",
                "dropoff.metadata.my_own.key_1",
            ),
            ("tax", "tax"),
            ("a..b_", "a..b"),
        ] {
            assert_eq!(words.path(field), path);
        }
    }

    #[test]
    fn what_the_client_chose_is_what_it_is_told_of() {
        let mut words = ClientWords::default();
        words.choose("dropoff.before".to_owned(), "doneBefore");
        words.choose("dropoff.address.lat_lng".to_owned(), "geo");
        words.keep("dropoff.my_own".to_owned());

        for (field, path) in [
            ("dropoff.before", "dropoff.doneBefore"),
            ("pickup.before", "pickup.before"),
            ("dropoff.address.lat_lng", "dropoff.address.geo"),
            (
                "dropoff.address.lat_lng.latitude",
                "dropoff.address.geo.latitude",
            ),
            ("dropoff.my_own", "dropoff.my_own"),
        ] {
            assert_eq!(words.path(field), path);
        }
    }
}
