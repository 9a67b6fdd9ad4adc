//! Prints results: fields and tables, or JSON.

use std::io::{self, IsTerminal as _, Write};

use jiff::{Timestamp, tz::TimeZone};
use process::logs::printable;
use serde::Serialize;

/// A result that can be printed as fields or as JSON.
pub(crate) trait Resource: Serialize {
    /// Names and values of the printed fields, most important first; the same names for every
    /// resource of a type.
    fn fields(&self) -> Vec<(&'static str, String)>;
}

/// Prints one resource.
pub(crate) fn one(json: bool, resource: &impl Resource) -> anyhow::Result<()> {
    if json {
        return document(resource);
    }
    let mut fields = printable_fields(resource);
    fields.retain(|(_, value)| !value.is_empty());
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut out = io::stdout().lock();
    for (name, value) in &fields {
        writeln!(out, "{name:width$}  {value}")?;
    }
    Ok(())
}

/// Prints a table of resources.
pub(crate) fn many<R: Resource>(json: bool, resources: &[R]) -> anyhow::Result<()> {
    if json {
        return document(&resources);
    }
    let rows: Vec<_> = resources.iter().map(printable_fields).collect();
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

/// The fields of a resource, each on one line.
fn printable_fields(resource: &impl Resource) -> Vec<(&'static str, String)> {
    let one_line = |value: String| printable(&value).replace('\n', "\\n").replace('\t', "\\t");
    let fields = resource.fields().into_iter();
    fields
        .map(|(name, value)| (name, one_line(value)))
        .collect()
}

/// Prints text, [`printable`] and with a final line break.
pub(crate) fn text(text: &str) -> anyhow::Result<()> {
    write(&printable(text))
}

/// Prints a stored definition: unchanged into a file or a pipe, so that it can be applied again.
pub(crate) fn definition(definition: &str) -> anyhow::Result<()> {
    if io::stdout().is_terminal() {
        return text(definition);
    }
    write(definition)
}

fn write(text: &str) -> anyhow::Result<()> {
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

/// Formats an instant in a time zone (UTC if unknown): `2020-04-02T12:00:00+02:00`.
pub(crate) fn instant(timestamp: Option<&prost_types::Timestamp>, zone: &str) -> Option<String> {
    let timestamp = timestamp?;
    let instant = Timestamp::new(timestamp.seconds, timestamp.nanos).ok()?;
    let zone = TimeZone::get(zone).unwrap_or(TimeZone::UTC);
    let formatted = instant.to_zoned(zone).strftime("%FT%T%:z").to_string();
    Some(formatted)
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
    fn columns_are_aligned() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();

        let text = table(&[row(["id", "name"]), row(["1", "Épicerie"]), row(["23", ""])]);

        assert_eq!(text, "id  name\n1   Épicerie\n23\n");
    }

    #[test]
    fn an_instant_is_written_in_its_zone() {
        let timestamp = prost_types::Timestamp {
            seconds: 1_585_821_600,
            nanos: 0,
        };

        let format = |zone| instant(Some(&timestamp), zone);

        assert_eq!(
            format("Europe/Paris").as_deref(),
            Some("2020-04-02T12:00:00+02:00")
        );
        assert_eq!(format("").as_deref(), Some("2020-04-02T10:00:00+00:00"));
        assert_eq!(instant(None, "Europe/Paris"), None);
    }
}
