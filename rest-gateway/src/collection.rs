//! Hydra collections: many resources in one answer.

use serde::Serialize;

/// A collection, or a page of one.
#[derive(Debug, Serialize)]
pub(crate) struct Collection<T> {
    #[serde(rename = "@context")]
    context: &'static str,
    #[serde(rename = "@id")]
    iri: &'static str,
    #[serde(rename = "@type")]
    ld_type: &'static str,
    #[serde(rename = "hydra:member")]
    members: Vec<T>,
    #[serde(rename = "hydra:totalItems", skip_serializing_if = "Option::is_none")]
    total: Option<usize>,
    #[serde(rename = "hydra:view")]
    view: View,
}

/// What of the collection is shown, and where the rest is.
#[derive(Debug, Serialize)]
pub(crate) struct View {
    #[serde(rename = "@id")]
    iri: String,
    #[serde(rename = "@type")]
    ld_type: &'static str,
    #[serde(rename = "hydra:first", skip_serializing_if = "Option::is_none")]
    first: Option<String>,
    #[serde(rename = "hydra:previous", skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
    #[serde(rename = "hydra:next", skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Where a page is in its collection.
#[derive(Debug, Default)]
pub(crate) struct Position {
    /// What the client asked for, without its cursor: `itemsPerPage=10`, or nothing.
    pub(crate) query: String,
    /// Empty on the first page.
    pub(crate) cursor: String,
    /// Of the page before; empty if there is none.
    pub(crate) previous: String,
    /// Of the page after; empty if there is none.
    pub(crate) next: String,
}

impl<T> Collection<T> {
    /// All there are.
    pub(crate) fn whole(context: &'static str, iri: &'static str, members: Vec<T>) -> Self {
        Self {
            total: Some(members.len()),
            view: View {
                iri: iri.to_owned(),
                ld_type: "hydra:PartialCollectionView",
                first: None,
                previous: None,
                next: None,
            },
            context,
            iri,
            ld_type: "hydra:Collection",
            members,
        }
    }

    /// Some of those there are; how many, nobody counts.
    pub(crate) fn page(
        context: &'static str,
        iri: &'static str,
        members: Vec<T>,
        position: &Position,
    ) -> Self {
        let at = |cursor: &str| page_iri(iri, &position.query, cursor);
        let beyond = |cursor: &str| (!cursor.is_empty()).then(|| at(cursor));
        Self {
            context,
            iri,
            ld_type: "hydra:Collection",
            members,
            total: None,
            view: View {
                iri: at(&position.cursor),
                ld_type: "hydra:PartialCollectionView",
                first: Some(at("")),
                previous: beyond(&position.previous),
                next: beyond(&position.next),
            },
        }
    }
}

fn page_iri(iri: &str, query: &str, cursor: &str) -> String {
    match (query, cursor) {
        ("", "") => iri.to_owned(),
        (query, "") => format!("{iri}?{query}"),
        ("", cursor) => format!("{iri}?cursor={cursor}"),
        (query, cursor) => format!("{iri}?{query}&cursor={cursor}"),
    }
}
