//! The plans of the statements that platforms execute over PostgreSQL. It makes them without sequential
//! scans if an index serves, so that they do not depend on the tables' few rows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// With this variable, PostgreSQL logs the plan of each statement in the file that it names.
pub(crate) const FILE: &str = "DELIVERY_TEST_PLANS";

/// A statement that reads all of a table or of one of its indexes.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FullScan {
    pub(crate) table: String,
    pub(crate) statement: String,
}

/// The indexes and their first columns. Partial ones have few rows, may be read as a whole, and are
/// not listed.
pub(crate) type Indexes = BTreeMap<String, String>;

/// The statements of platforms in a log that read all of one of `tables`. Fails if a table is in no
/// plan.
pub(crate) fn full_scans(
    log: &str,
    tables: &BTreeSet<String>,
    indexes: &Indexes,
) -> BTreeSet<FullScan> {
    let (mut found, mut planned) = (BTreeSet::new(), BTreeSet::new());
    for plan in plans(log) {
        add_tables(&plan["Plan"], &mut planned);
        let mut scanned = BTreeSet::new();
        add_full_scans(&plan["Plan"], false, indexes, &mut scanned);
        let statement = plan["Query Text"].as_str().unwrap().split_whitespace();
        let statement = statement.collect::<Vec<_>>().join(" ");
        found.extend(scanned.intersection(tables).map(|table| FullScan {
            table: table.clone(),
            statement: statement.clone(),
        }));
    }
    assert!(tables.is_subset(&planned), "{planned:?}");
    found
}

/// The plans of platforms' statements in a log.
fn plans(log: &str) -> impl Iterator<Item = Value> {
    // Platforms set no application name; other programs do.
    let entries = log.split("\n[unknown]:LOG:  duration: ").skip(1);
    entries.filter_map(|entry| {
        let (_, plan) = entry.split_once("plan:\n")?;
        let lines = plan.lines().take_while(|line| line.starts_with('\t'));
        Some(serde_json::from_str(&lines.collect::<String>()).unwrap())
    })
}

/// Adds the tables of a plan.
fn add_tables(node: &Value, tables: &mut BTreeSet<String>) {
    let name = node["Relation Name"].as_str();
    tables.extend(name.map(str::to_owned));
    for child in node["Plans"].as_array().into_iter().flatten() {
        add_tables(child, tables);
    }
}

/// Adds the tables that a plan reads without a condition on the first column of an index, unless it
/// reads rows in order up to a limit.
fn add_full_scans(node: &Value, is_limited: bool, indexes: &Indexes, found: &mut BTreeSet<String>) {
    let text = |name: &str| node[name].as_str().unwrap_or_default();
    let kind = text("Node Type");
    let is_full = match kind {
        "Seq Scan" => true,
        "Index Scan" | "Index Only Scan" => indexes.get(text("Index Name")).is_some_and(|first| {
            let is_in_order = is_limited && text("Filter").is_empty();
            let mut names = text("Index Cond").split(|c: char| !c.is_alphanumeric() && c != '_');
            !is_in_order && !names.any(|name| name == first)
        }),
        _ => false,
    };
    if is_full {
        found.insert(text("Relation Name").to_owned());
    }
    // A node that reads all its input before it returns a row does not stop at the limit.
    let is_limited =
        kind == "Limit" || (is_limited && !matches!(kind, "Sort" | "Aggregate" | "Hash"));
    for child in node["Plans"].as_array().into_iter().flatten() {
        let passes_rows = matches!(
            child["Parent Relationship"].as_str(),
            Some("Outer" | "Member")
        );
        add_full_scans(child, is_limited && passes_rows, indexes, found);
    }
}
