//! What the platform really answers: `examples.json` is written by a test, from outside.

use serde_json::{Map, Value};

/// Operation → the body of an answer.
pub(super) struct Examples(Map<String, Value>);

impl Examples {
    pub(super) fn read() -> Self {
        match parse(include_str!("examples.json")) {
            Value::Object(examples) => Self(examples),
            _ => Self(Map::new()),
        }
    }

    pub(super) fn answer(&self, operation: &str) -> Option<&Value> {
        self.0.get(operation)
    }
}

/// A JSON text of these tables.
pub(super) fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("a test parses every text of the tables")
}
