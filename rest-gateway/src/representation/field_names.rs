//! Translates the field names of core's messages into the member names that the client used.

use std::collections::{HashMap, HashSet};

/// The member names of one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldNames {
    /// Path of a field → the member that the client used, for fields with several names.
    pub(crate) aliases: HashMap<String, &'static str>,
    /// Paths that are not translated.
    pub(crate) verbatim: HashSet<String>,
}

impl FieldNames {
    /// A field's path in the client's names: `dropoff.address.lat_lng` →
    /// `dropoff.address.latLng`, or `….geo` if the client used that.
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
            let field_path = &field[..start + name.len()];
            match self.aliases.get(field_path) {
                Some(member) => path.push_str(member),
                None => push_member(&mut path, name),
            }
            path.push_str(index);
            if name == "metadata" {
                // The rest of the path is the client's own keys.
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

/// Appends the API's name of a field.
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
    fn fields_have_the_names_of_the_api() {
        let names = FieldNames::default();

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
            assert_eq!(names.path(field), path);
        }
    }

    #[test]
    fn a_field_has_the_name_that_the_client_used() {
        let names = FieldNames {
            aliases: HashMap::from([
                ("dropoff.before".to_owned(), "doneBefore"),
                ("dropoff.address.lat_lng".to_owned(), "geo"),
            ]),
            verbatim: HashSet::from(["dropoff.my_own".to_owned()]),
        };

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
            assert_eq!(names.path(field), path);
        }
    }
}
