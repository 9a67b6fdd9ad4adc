//! Parses IDs: plain, as a resource name or as an IRI.

use proto::iri::{self, Collection};

/// The ID in a resource's name.
pub(crate) fn of(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, id)| id)
}

/// A parser of the name of a collection's resource: `stores/<id>`.
pub(crate) fn parser(
    collection: Collection,
) -> impl Fn(&str) -> Result<String, String> + Clone + Send + Sync + 'static {
    move |text| name(collection, text)
}

fn name(collection: Collection, text: &str) -> Result<String, String> {
    let text = iri::name(text);
    let name = if text.contains('/') {
        text.to_owned()
    } else {
        collection.name(text)
    };
    if collection.id(&name).is_some() {
        return Ok(name);
    }
    let segment = collection.segment();
    let prefix = iri::PREFIX;
    Err(format!(
        "must be an ID, {segment}/<id> or {prefix}{segment}/<id>"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_a_name_and_an_iri_are_equivalent() {
        let id = "01932e5c-9f4a-7000-8000-00000000000a";

        for text in [
            id.to_owned(),
            format!("tasks/{id}"),
            format!("/api/tasks/{id}"),
        ] {
            assert_eq!(name(Collection::Tasks, &text), Ok(format!("tasks/{id}")));
        }
        assert_eq!(of(&format!("tasks/{id}")), id);
        for wrong in [format!("stores/{id}"), "7".to_owned(), String::new()] {
            assert!(name(Collection::Tasks, &wrong).is_err(), "{wrong}");
        }
    }
}
