//! Resource names, ids and IRIs: `deliveries/<id>` ⇄ `<id>` ⇄ `/api/deliveries/<id>`.

use uuid::Uuid;

pub const PREFIX: &str = "/api/";

/// The collections of named resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    Addresses,
    ApiClients,
    AuditEvents,
    Couriers,
    Deliveries,
    Events,
    Images,
    Incidents,
    Notifications,
    RetailPrices,
    SigningKeys,
    Stores,
    Tasks,
    TimeSlots,
    Webhooks,
}

impl Collection {
    /// The collection's path segment, the same in resource names and URLs.
    pub const fn segment(self) -> &'static str {
        match self {
            Self::Addresses => "addresses",
            // The path of the specification (`/api/api_apps/<id>`); all other names say API client.
            Self::ApiClients => "api_apps",
            Self::AuditEvents => "audit_events",
            Self::Couriers => "couriers",
            Self::Deliveries => "deliveries",
            Self::Events => "events",
            Self::Images => "images",
            Self::Incidents => "incidents",
            Self::Notifications => "notifications",
            Self::RetailPrices => "retail_prices",
            Self::SigningKeys => "signing_keys",
            Self::Stores => "stores",
            Self::Tasks => "tasks",
            Self::TimeSlots => "time_slots",
            Self::Webhooks => "webhooks",
        }
    }

    /// The name of a member: `tasks/<id>`.
    pub fn name(self, id: impl std::fmt::Display) -> String {
        format!("{}/{id}", self.segment())
    }

    /// What the name of a member looks like, for messages.
    pub fn name_format(self) -> String {
        self.name(match self {
            Self::RetailPrices => "<token>",
            _ => "<id>, with a UUID in lower case",
        })
    }

    /// The last segment of the name of a member of this collection.
    pub fn last_segment(self, name: &str) -> Option<&str> {
        name.strip_prefix(self.segment())?
            .strip_prefix('/')
            .filter(|id| !id.is_empty() && !id.contains('/'))
    }

    /// The id in the name of a member of this collection. Accepts only the canonical spelling of
    /// UUIDs: lower case with hyphens.
    pub fn id(self, name: &str) -> Option<Uuid> {
        let text = self.last_segment(name)?;
        let id = Uuid::try_parse(text).ok()?;
        (id.hyphenated().encode_lower(&mut Uuid::encode_buffer()) == text).then_some(id)
    }
}

/// The IRI of a named resource: `/api/tasks/<id>`.
pub fn of(name: &str) -> String {
    [PREFIX, name].concat()
}

/// The resource name in an IRI; a name without the prefix is returned unchanged.
pub fn name(iri: &str) -> &str {
    iri.strip_prefix(PREFIX).unwrap_or(iri)
}

/// Whether a text is an IRI of this API, as a path or with a host before it.
pub fn is_iri(text: &str) -> bool {
    let url = ["https://", "http://"]
        .into_iter()
        .find_map(|scheme| text.strip_prefix(scheme));
    let path = match url {
        Some(url) => url.find('/').and_then(|start| url.get(start..)),
        None => Some(text),
    };
    path.is_some_and(|path| path.starts_with(PREFIX)) && !text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_canonical_spelling_of_a_name_is_accepted() {
        let id = "01932e5c-9f4a-7000-8000-00000000000a";
        for wrong in [
            format!("deliveries/{id}"),
            format!("tasks/{}", id.to_uppercase()),
            format!("tasks/{}", id.replace('-', "")),
            format!("tasks/{{{id}}}"),
            format!("tasks/{id}/"),
            format!("/tasks/{id}"),
            format!("tasks//{id}"),
            "tasks/".to_owned(),
            "tasks".to_owned(),
            String::new(),
        ] {
            assert_eq!(Collection::Tasks.id(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_iri_is_a_path_or_a_url_without_spaces() {
        for (text, expected) in [
            ("/api/addresses/01932e5c-9f4a-7000-8000-00000000000a", true),
            ("https://delivery.example/api/addresses/1", true),
            ("http://127.0.0.1:8080/api/addresses/1", true),
            ("https://delivery.example/maps?to=/api/addresses/1", false),
            ("https://delivery.example", false),
            ("addresses/1", false),
            ("api/addresses/1", false),
            ("/api/1 Rue de Rivoli", false),
            ("48/2 Rue de Rivoli, 75004 Paris", false),
            ("", false),
        ] {
            assert_eq!(is_iri(text), expected, "{text}");
        }
    }

    proptest! {
        /// All spellings that `Uuid` parses; for a number without letters, the first two are equal.
        #[test]
        fn only_the_canonical_spelling_of_any_id_is_accepted(bits: u128) {
            let id = Uuid::from_u128(bits);
            for spelling in [
                id.hyphenated().to_string(),
                id.hyphenated().to_string().to_uppercase(),
                id.simple().to_string(),
                id.braced().to_string(),
                id.urn().to_string(),
            ] {
                let name = format!("tasks/{spelling}");
                let expected = (name == Collection::Tasks.name(id)).then_some(id);
                prop_assert_eq!(Collection::Tasks.id(&name), expected);
                prop_assert_eq!(Collection::Tasks.id(&spelling), None);
            }
        }

        #[test]
        fn names_ids_and_iris_convert_into_each_other(bits: u128) {
            let id = Uuid::from_u128(bits);
            let webhook = Collection::Webhooks.name(id);

            let iri = of(&webhook);
            prop_assert_eq!(&iri, &format!("/api/webhooks/{id}"));
            prop_assert_eq!(name(&iri), &webhook);
            prop_assert_eq!(name(&webhook), &webhook);
            prop_assert_eq!(Collection::Webhooks.id(&webhook), Some(id));
            prop_assert_eq!(Collection::Tasks.id(&webhook), None);
        }

        #[test]
        fn parsing_never_panics(text in prop_oneof![any::<String>(), "tasks/[0-9a-f-]{0,40}"]) {
            let _ = Collection::Tasks.id(name(&text));
            let _ = is_iri(&text);
        }
    }
}
