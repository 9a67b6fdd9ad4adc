//! Hydra collections and their pagination.

use serde::Serialize;

use crate::{
    api_description::operations::Operation, representation::json_ld::Node, request::Request,
};

/// What generic Hydra clients send with each list request, and what has no effect.
pub(crate) const PAGE: &str = "page";
pub(crate) const ORDER: &str = "order[id]";

/// A collection, or a page of one.
#[derive(Debug, Serialize)]
pub(crate) struct Collection<T> {
    #[serde(flatten)]
    node: Node,
    #[serde(rename = "hydra:member")]
    members: Vec<T>,
    #[serde(rename = "hydra:totalItems", skip_serializing_if = "Option::is_none")]
    total: Option<usize>,
    #[serde(rename = "hydra:view")]
    view: View,
    #[serde(rename = "hydra:search", skip_serializing_if = "Option::is_none")]
    search: Option<Search>,
}

/// The IRI of the page, and links to the other pages.
#[derive(Debug, Serialize)]
struct View {
    #[serde(flatten)]
    node: Node,
    #[serde(rename = "hydra:first", skip_serializing_if = "Option::is_none")]
    first: Option<String>,
    #[serde(rename = "hydra:previous", skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
    #[serde(rename = "hydra:next", skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The filters of a list. Like API Platform, whose clients read it, it has the names of the query
/// parameters as they are, although RFC 6570 has no brackets in names.
#[derive(Debug, Serialize)]
#[serde(tag = "@type", rename = "hydra:IriTemplate")]
struct Search {
    #[serde(rename = "hydra:template")]
    template: String,
    #[serde(rename = "hydra:variableRepresentation")]
    representation: &'static str,
    #[serde(rename = "hydra:mapping")]
    mapping: Vec<Mapping>,
}

/// A filter of a list.
#[derive(Debug, Serialize)]
#[serde(tag = "@type", rename = "IriTemplateMapping")]
struct Mapping {
    variable: &'static str,
    property: &'static str,
    required: bool,
}

/// The cursors of a page and of its neighbours.
#[derive(Debug)]
pub(crate) struct Pagination {
    pub(crate) operation: &'static Operation,
    /// The query parameter of the cursor.
    pub(crate) parameter: &'static str,
    /// The query of the request without its cursor, such as `itemsPerPage=10`.
    pub(crate) query: String,
    /// Cursor of this page; empty on the first.
    pub(crate) cursor: String,
    /// Cursor of the previous page; empty if there is none.
    pub(crate) previous: String,
    /// Cursor of the next page; empty if there is none.
    pub(crate) next: String,
}

impl<T> Collection<T> {
    /// The complete collection.
    pub(crate) fn whole(iri: &str, members: Vec<T>) -> Self {
        Self {
            node: Node::with_iri("hydra:Collection", iri.to_owned()),
            total: Some(members.len()),
            members,
            view: View {
                node: view_node(iri.to_owned()),
                first: None,
                previous: None,
                next: None,
            },
            search: None,
        }
    }

    /// A page of a collection, without a total count.
    pub(crate) fn page(iri: String, members: Vec<T>, pagination: &Pagination) -> Self {
        let page_at = |cursor: &str| page_iri(&iri, pagination, cursor);
        let neighbour = |cursor: &str| (!cursor.is_empty()).then(|| page_at(cursor));
        Self {
            view: View {
                node: view_node(page_at(&pagination.cursor)),
                first: Some(page_at("")),
                previous: neighbour(&pagination.previous),
                next: neighbour(&pagination.next),
            },
            search: Search::new(&iri, pagination.operation),
            node: Node::with_iri("hydra:Collection", iri),
            members,
            total: None,
        }
    }
}

fn view_node(iri: String) -> Node {
    Node::with_iri("hydra:PartialCollectionView", iri)
}

impl Search {
    /// None of a list without filters.
    fn new(iri: &str, operation: &Operation) -> Option<Self> {
        let mut names = Vec::new();
        let mut mapping = Vec::new();
        for filter in operation.filters() {
            let explode = if filter.is_repeatable { "*" } else { "" };
            names.push(format!("{}{explode}", filter.name));
            mapping.push(Mapping {
                variable: &filter.name,
                property: &filter.property,
                required: false,
            });
        }
        (!names.is_empty()).then(|| Self {
            template: format!("{iri}{{?{}}}", names.join(",")),
            representation: "BasicRepresentation",
            mapping,
        })
    }
}

fn page_iri(iri: &str, pagination: &Pagination, cursor: &str) -> String {
    let parameter = pagination.parameter;
    match (pagination.query.as_str(), cursor) {
        ("", "") => iri.to_owned(),
        (query, "") => format!("{iri}?{query}"),
        ("", cursor) => format!("{iri}?{parameter}={cursor}"),
        (query, cursor) => format!("{iri}?{query}&{parameter}={cursor}"),
    }
}

/// Reads the page size from `itemsPerPage`. `page` and `order[id]` must be possible: API Platform's
/// Admin sends them with each list request, but a list has cursors and one order.
pub(crate) fn read_page_size(request: &mut Request) -> Option<u32> {
    if read_single(request, PAGE, PAGE).is_some_and(|page| page != "1") {
        let description = "must be 1: the other pages are links in hydra:view";
        request.violations.add(PAGE, "OUT_OF_RANGE", description);
    }
    read_choice(request, "order", ORDER, &[("ASC", ()), ("DESC", ())]);
    let requirement = "must be a whole number from 1 to 100";
    read_parsed(request, "page_size", "itemsPerPage", requirement, |text| {
        text.parse().ok()
    })
}

/// Reads a query parameter that may occur once, as the value of a field. It is invalid if `parse`
/// returns none.
pub(crate) fn read_parsed<T>(
    request: &mut Request,
    field: &str,
    parameter: &'static str,
    requirement: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    let parsed = parse(&read_single(request, field, parameter)?);
    if parsed.is_none() {
        request.violations.add(field, "WRONG_TYPE", requirement);
    }
    parsed
}

/// Reads a query parameter that may occur once, and that has a closed set of values.
pub(crate) fn read_choice<T: Copy>(
    request: &mut Request,
    field: &str,
    parameter: &'static str,
    choices: &[(&str, T)],
) -> Option<T> {
    let text = read_single(request, field, parameter)?;
    let chosen = choices.iter().find(|(choice, _)| *choice == text);
    if chosen.is_none() {
        let names: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
        let description = format!("must be {}, not {text:?}", names.join(" or "));
        request.violations.add(field, "UNKNOWN_VALUE", description);
    }
    chosen.map(|(_, value)| *value)
}

/// Reads a query parameter that may occur once, as the value of a field.
pub(crate) fn read_single(
    request: &mut Request,
    field: &str,
    parameter: &'static str,
) -> Option<String> {
    let mut values = request.query(parameter);
    let violations = &mut request.violations;
    violations.add_alias(field.to_owned(), parameter);
    if values.len() > 1 {
        violations.add(field, "REPEATED", "must occur only once");
        return None;
    }
    values.pop()
}
