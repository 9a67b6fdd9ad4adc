//! Prints results: fields and tables, or JSON.

use std::io::{self, IsTerminal as _, Write};

use jiff::{Timestamp, tz::TimeZone};
use process::logs::printable;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// A result of a command: its fields in JSON, and in the text for people, with their names there.
#[derive(Default)]
pub(crate) struct View {
    json: Vec<(&'static str, Value)>,
    text: Vec<(String, String)>,
    /// Before the fields in the text.
    tables: Vec<String>,
}

impl View {
    /// Adds a field to both. The text calls `api_key` api key, and `created_at` created.
    pub(crate) fn field(self, key: &'static str, value: impl Into<Value>) -> Self {
        let name = key.strip_suffix("_at").unwrap_or(key).replace('_', " ");
        self.named(key, name, value)
    }

    /// Adds a field to both, with a name of its own in the text.
    pub(crate) fn named(
        self,
        key: &'static str,
        name: impl Into<String>,
        value: impl Into<Value>,
    ) -> Self {
        let value = value.into();
        let text = text_of(&value);
        self.json(key, value).text(name, text)
    }

    /// Adds a field to both, if it has a value.
    pub(crate) fn optional(self, key: &'static str, value: Option<String>) -> Self {
        match value {
            Some(value) => self.field(key, value),
            None => self,
        }
    }

    /// Adds results that have the same fields: an array in the JSON, a table in the text.
    pub(crate) fn list(mut self, key: &'static str, views: Vec<View>) -> Self {
        self.tables.push(table_of(&views));
        self.json(key, views)
    }

    /// Adds a field to the JSON only.
    pub(crate) fn json(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.json.push((key, value.into()));
        self
    }

    /// Adds a field to the text only.
    pub(crate) fn text(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        let printable = printable(&text.into());
        let one_line = printable.replace('\n', "\\n").replace('\t', "\\t");
        self.text.push((name.into(), one_line));
        self
    }
}

impl Serialize for View {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.json.iter().map(|(key, value)| (key, value)))
    }
}

/// Makes a view a member of another document.
impl From<View> for Value {
    fn from(view: View) -> Self {
        let members = view.json.into_iter();
        members
            .map(|(key, value)| (key.to_owned(), value))
            .collect()
    }
}

/// A value as text; a list with spaces between its elements.
fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text_of).collect::<Vec<_>>().join(" "),
        value => value.to_string(),
    }
}

pub(crate) fn non_empty(text: impl Into<String>) -> Option<String> {
    Some(text.into()).filter(|text| !text.is_empty())
}

/// Prints one result: its lists, and the fields that have a value.
pub(crate) fn one(json: bool, view: View) -> anyhow::Result<()> {
    if json {
        return text(&serde_json::to_string_pretty(&view)?);
    }
    let fields = view.text.into_iter();
    let rows: Vec<_> = fields
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| vec![name, value])
        .collect();
    let mut parts = view.tables;
    parts.push(table(&rows));
    parts.retain(|part| !part.is_empty());
    text(&parts.join("\n"))
}

/// Prints one result of a sequence on one line: its JSON, or the fields that have a value.
pub(crate) fn line(json: bool, view: View) -> anyhow::Result<()> {
    if json {
        return text(&serde_json::to_string(&view)?);
    }
    let fields = view.text.into_iter().map(|(_, value)| value);
    let fields: Vec<_> = fields.filter(|value| !value.is_empty()).collect();
    text(&fields.join("  "))
}

/// Prints a table of results, which have the same fields.
pub(crate) fn many(json: bool, views: impl IntoIterator<Item = View>) -> anyhow::Result<()> {
    let views: Vec<_> = views.into_iter().collect();
    if json {
        return text(&serde_json::to_string_pretty(&views)?);
    }
    match &*table_of(&views) {
        "" => text("none"),
        table => text(table),
    }
}

/// Prints results as CSV (RFC 4180), with the fields of their JSON. The header is of another one, as there may be none.
pub(crate) fn csv(header: &View, views: &[View]) -> anyhow::Result<()> {
    let names = header.json.iter().map(|(name, _)| (*name).to_owned());
    let mut lines = csv_line(names);
    for view in views {
        lines += &csv_line(view.json.iter().map(|(_, value)| text_of(value)));
    }
    write(&lines)
}

fn csv_line(fields: impl Iterator<Item = String>) -> String {
    let field = |field: String| {
        if field.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field
        }
    };
    let fields: Vec<_> = fields.map(field).collect();
    fields.join(",") + "\r\n"
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

/// The name of a value of an enum of the contract, in lower case and without the name of the enum:
/// `pending` for `STATE_PENDING`.
pub(crate) fn enum_name(value: &str, prefix: &str) -> String {
    value.strip_prefix(prefix).unwrap_or(value).to_lowercase()
}

pub(crate) fn timestamp(instant: Timestamp) -> prost_types::Timestamp {
    std::time::SystemTime::from(instant).into()
}

/// Formats an instant in a time zone (UTC if unknown): `2020-04-02T12:00:00+02:00`.
pub(crate) fn instant(timestamp: Option<prost_types::Timestamp>, zone: &str) -> Option<String> {
    let timestamp = timestamp?;
    let instant = Timestamp::new(timestamp.seconds, timestamp.nanos).ok()?;
    let zone = TimeZone::get(zone).unwrap_or(TimeZone::UTC);
    let formatted = instant.to_zoned(zone).strftime("%FT%T%:z").to_string();
    Some(formatted)
}

/// A table with a header; empty without results.
fn table_of(views: &[View]) -> String {
    let Some(first) = views.first() else {
        return String::new();
    };
    let mut rows = vec![first.text.iter().map(|(name, _)| name.clone()).collect()];
    let cells = |view: &View| view.text.iter().map(|(_, text)| text.clone()).collect();
    rows.extend(views.iter().map(cells));
    table(&rows)
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
    fn a_field_of_csv_is_quoted_if_it_must_be() {
        let fields = ["plain", "a, b", "say \"hi\"", "two\nlines", ""].map(str::to_owned);

        let line = csv_line(fields.into_iter());

        assert_eq!(
            line,
            "plain,\"a, b\",\"say \"\"hi\"\"\",\"two\nlines\",\r\n"
        );
    }

    #[test]
    fn an_instant_is_written_in_its_zone() {
        let timestamp = prost_types::Timestamp {
            seconds: 1_585_821_600,
            nanos: 0,
        };

        let format = |zone| instant(Some(timestamp), zone);

        assert_eq!(
            format("Europe/Paris").as_deref(),
            Some("2020-04-02T12:00:00+02:00")
        );
        assert_eq!(format("").as_deref(), Some("2020-04-02T10:00:00+00:00"));
        assert_eq!(instant(None, "Europe/Paris"), None);
    }
}
