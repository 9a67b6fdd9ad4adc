//! What a command prints: facts for people, or one JSON document for programs.

use std::io::{self, Write};

use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;

/// Something that can be shown: serialised for programs, as facts for people.
pub(crate) trait Resource: Serialize {
    /// What is to be known of it, named, in the order of importance; the same names for every
    /// resource of a type.
    fn facts(&self) -> Vec<(&'static str, String)>;
}

/// Prints one resource.
pub(crate) fn one(json: bool, resource: &impl Resource) -> anyhow::Result<()> {
    if json {
        return document(resource);
    }
    let mut facts = resource.facts();
    facts.retain(|(_, value)| !value.is_empty());
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut out = io::stdout().lock();
    for (name, value) in &facts {
        writeln!(out, "{name:width$}  {value}")?;
    }
    Ok(())
}

/// Prints any number of resources, one a line.
pub(crate) fn many<R: Resource>(json: bool, resources: &[R]) -> anyhow::Result<()> {
    if json {
        return document(&resources);
    }
    let rows: Vec<_> = resources.iter().map(Resource::facts).collect();
    let Some(first) = rows.first() else {
        return text("none\n");
    };
    let header: Vec<_> = first.iter().map(|(name, _)| (*name).to_owned()).collect();
    let cells = rows
        .iter()
        .map(|row| row.iter().map(|(_, value)| value.clone()).collect());
    text(&table(
        &std::iter::once(header).chain(cells).collect::<Vec<_>>(),
    ))
}

/// Prints text as it is.
pub(crate) fn text(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Prints a JSON document.
pub(crate) fn document(value: &impl Serialize) -> anyhow::Result<()> {
    text(&serde_json::to_string_pretty(value)?)
}

/// An instant, written in a zone (UTC if it is not known): `2020-04-02T12:00:00+02:00`.
pub(crate) fn instant(timestamp: Option<&prost_types::Timestamp>, zone: &str) -> Option<String> {
    let timestamp = timestamp?;
    let instant = Timestamp::new(timestamp.seconds, timestamp.nanos).ok()?;
    let zone = TimeZone::get(zone).unwrap_or(TimeZone::UTC);
    let shown = instant.to_zoned(zone).strftime("%FT%T%:z").to_string();
    Some(shown)
}

fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let line: Vec<_> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();

        let shown = table(&[row(["id", "name"]), row(["1", "Épicerie"]), row(["23", ""])]);

        assert_eq!(shown, "id  name\n1   Épicerie\n23\n");
    }

    #[test]
    fn an_instant_is_written_in_its_zone() {
        let timestamp = prost_types::Timestamp {
            seconds: 1_585_821_600,
            nanos: 0,
        };

        let shown = |zone| instant(Some(&timestamp), zone);

        assert_eq!(
            shown("Europe/Paris").as_deref(),
            Some("2020-04-02T12:00:00+02:00")
        );
        assert_eq!(shown("").as_deref(), Some("2020-04-02T10:00:00+00:00"));
        assert_eq!(instant(None, "Europe/Paris"), None);
    }
}
