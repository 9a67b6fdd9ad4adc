//! Parses IDs: plain, as a resource name or as an IRI.

use proto::iri::{self, Collection};

/// Parses the name of a store: `stores/<id>`.
pub(crate) fn store(text: &str) -> Result<String, String> {
    name(Collection::Stores, text)
}

/// Parses the name of an API client: `api_apps/<id>`.
pub(crate) fn api_client(text: &str) -> Result<String, String> {
    name(Collection::ApiClients, text)
}

/// Parses the name of a task: `tasks/<id>`.
pub(crate) fn task(text: &str) -> Result<String, String> {
    name(Collection::Tasks, text)
}

/// Parses the name of a delivery: `deliveries/<id>`.
pub(crate) fn delivery(text: &str) -> Result<String, String> {
    name(Collection::Deliveries, text)
}

/// Parses the name of a webhook: `webhooks/<id>`.
pub(crate) fn webhook(text: &str) -> Result<String, String> {
    name(Collection::Webhooks, text)
}

/// Parses the name of a notification: `notifications/<id>`.
pub(crate) fn notification(text: &str) -> Result<String, String> {
    name(Collection::Notifications, text)
}

/// The ID in a resource's name.
pub(crate) fn of(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, id)| id)
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
            assert_eq!(task(&text), Ok(format!("tasks/{id}")));
        }
        assert_eq!(of(&format!("tasks/{id}")), id);
        for wrong in [format!("stores/{id}"), "7".to_owned(), String::new()] {
            assert!(task(&wrong).is_err(), "{wrong}");
        }
    }
}
