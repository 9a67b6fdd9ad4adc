//! Hydra collections: many resources in one answer.

use std::borrow::Cow;

use serde::Serialize;

use crate::{report::Report, request::Request};

/// A collection, or a page of one.
#[derive(Debug, Serialize)]
pub(crate) struct Collection<T> {
    #[serde(rename = "@context")]
    context: &'static str,
    #[serde(rename = "@id")]
    iri: Cow<'static, str>,
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
    /// The query parameter that has the cursor.
    pub(crate) parameter: &'static str,
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
            iri: iri.into(),
            ld_type: "hydra:Collection",
            members,
        }
    }

    /// Some of those there are; how many, nobody counts.
    pub(crate) fn page(
        context: &'static str,
        iri: impl Into<Cow<'static, str>>,
        members: Vec<T>,
        position: &Position,
    ) -> Self {
        let iri = iri.into();
        let at = |cursor: &str| page_iri(&iri, position, cursor);
        let beyond = |cursor: &str| (!cursor.is_empty()).then(|| at(cursor));
        let view = View {
            iri: at(&position.cursor),
            ld_type: "hydra:PartialCollectionView",
            first: Some(at("")),
            previous: beyond(&position.previous),
            next: beyond(&position.next),
        };
        Self {
            context,
            iri,
            ld_type: "hydra:Collection",
            members,
            total: None,
            view,
        }
    }
}

fn page_iri(iri: &str, position: &Position, cursor: &str) -> String {
    let parameter = position.parameter;
    match (position.query.as_str(), cursor) {
        ("", "") => iri.to_owned(),
        (query, "") => format!("{iri}?{query}"),
        ("", cursor) => format!("{iri}?{parameter}={cursor}"),
        (query, cursor) => format!("{iri}?{query}&{parameter}={cursor}"),
    }
}

/// How many a page is to show.
pub(crate) fn read_page_size(request: &Request, report: &mut Report) -> Option<u32> {
    const FIELD: &str = "page_size";

    let text = read_once(request, (FIELD, "itemsPerPage"), report)?;
    let size = text.parse().ok();
    if size.is_none() {
        report.add(FIELD, "WRONG_TYPE", "must be a whole number from 1 to 100");
    }
    size
}

/// A query parameter, which may be there once, for a field.
pub(crate) fn read_once(
    request: &Request,
    (field, parameter): (&str, &'static str),
    report: &mut Report,
) -> Option<String> {
    report.choose(field.to_owned(), parameter);
    let mut values = request.query(parameter);
    if values.len() > 1 {
        report.add(field, "REPEATED", "is there more than once");
        return None;
    }
    values.pop()
}

/// The query that asks for pages of a size.
pub(crate) fn page_query(page_size: Option<u32>) -> String {
    page_size.map_or_else(String::new, |size| format!("itemsPerPage={size}"))
}
