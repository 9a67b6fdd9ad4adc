//! The query parameters of a request that its operation does not have.

use url::form_urlencoded;

use crate::{body_reader::ViolationCollector, error::Error};

/// Core limits the violations of a response, too.
const MAX_NAMES: usize = 100;

/// The unknown parameters of a request, each once, and those that its operation has.
#[derive(Debug, Default)]
pub(crate) struct UnknownParameters {
    names: Vec<String>,
    known: Vec<&'static str>,
}

impl UnknownParameters {
    pub(crate) fn find(query: &str, known: Vec<&'static str>) -> Self {
        let mut names: Vec<String> = Vec::new();
        for (name, _) in form_urlencoded::parse(query.as_bytes()) {
            if names.len() == MAX_NAMES {
                break;
            }
            if !known.contains(&&*name) && !names.iter().any(|found| *found == name) {
                names.push(name.into_owned());
            }
        }
        Self { names, known }
    }

    /// Adds a violation for each: a mistyped filter would match everything, and a mistyped option
    /// would not apply.
    pub(crate) fn add_to(&self, violations: &mut ViolationCollector) {
        let description = match &self.known[..] {
            [] => "is unknown; there are no parameters".to_owned(),
            known => format!("is unknown; the parameters are {}", known.join(", ")),
        };
        for name in &self.names {
            violations.add_verbatim(name, "UNKNOWN_PARAMETER", &description);
        }
    }

    /// The violations as an error, if there are any.
    pub(crate) fn to_error(&self) -> Option<Error> {
        let mut violations = ViolationCollector::default();
        self.add_to(&mut violations);
        violations.into_error()
    }
}
