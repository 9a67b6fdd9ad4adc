//! What core refuses, in sentences.

use std::path::Path;

use rest_gateway::Payload;
use tonic::{Code, Status};
use tonic_types::StatusExt;

/// The refusal of a request: its violations one a line, or its message.
pub(crate) fn refused(status: &Status) -> anyhow::Error {
    let violations = violations(status, |field, description| {
        format!("{}: {description}", flag(field))
    });
    match status.code() {
        _ if !violations.is_empty() => anyhow::anyhow!(violations.join("\n")),
        Code::Unavailable => anyhow::anyhow!("the core does not answer: {}", status.message()),
        Code::PermissionDenied => {
            anyhow::anyhow!("the operator's client may not: {}", status.message())
        }
        _ => anyhow::anyhow!(status.message().to_owned()),
    }
}

/// What the operator typed for a field of a request; the field itself if it is none of a flag's.
fn flag(field: &str) -> &str {
    match field.split(['.', '[']).next() {
        Some("display_name") => "--name",
        Some("time_zone") => "--timezone",
        Some("currency_code") => "--currency",
        Some("country_code") => "--country",
        Some("scopes") => "--scopes",
        Some("service_area") => "--service-area",
        Some("store") => "--store",
        Some("states") => "--state",
        Some("since") => "--since",
        Some("overlap_seconds") => "--overlap",
        Some("default_address") if field.ends_with("lat_lng") => "--lat-lng",
        Some("default_address") => "--address",
        _ => field,
    }
}

/// The refusal of a delivery: its violations one a line, in the payload's own words.
pub(crate) fn refused_payload(payload: &Payload, status: &Status) -> anyhow::Error {
    let violations = violations(status, |field, description| {
        let path = payload.path(field);
        if path.is_empty() {
            description.to_owned()
        } else {
            format!("{path}: {description}")
        }
    });
    if violations.is_empty() {
        return refused(status);
    }
    anyhow::anyhow!(violations.join("\n"))
}

/// The refusal of a definition: its mistakes one a line, as compilers write them.
pub(crate) fn refused_definition(file: &Path, status: &Status) -> anyhow::Error {
    let mistakes = violations(status, |place, description| {
        let starts_with_line = place.starts_with(|first: char| first.is_ascii_digit());
        if starts_with_line {
            format!("{}:{place}: {description}", file.display())
        } else {
            format!("{place}: {description}")
        }
    });
    if mistakes.is_empty() {
        return refused(status);
    }
    anyhow::anyhow!(mistakes.join("\n"))
}

fn violations(status: &Status, line: impl Fn(&str, &str) -> String) -> Vec<String> {
    status
        .get_details_bad_request()
        .map(|bad_request| bad_request.field_violations)
        .unwrap_or_default()
        .iter()
        .map(|violation| line(&violation.field, &violation.description))
        .collect()
}

#[cfg(test)]
mod tests {
    use tonic_types::{ErrorDetails, FieldViolation};

    use super::*;

    fn invalid(violations: &[(&str, &str)]) -> Status {
        let violations = violations
            .iter()
            .map(|(field, description)| FieldViolation::new(*field, *description))
            .collect::<Vec<_>>();
        let mut details = ErrorDetails::new();
        details.set_bad_request(violations);
        Status::with_error_details(Code::InvalidArgument, "2 violations", details)
    }

    #[test]
    fn every_violation_has_a_line() {
        let status = invalid(&[("display_name", "is required"), ("time_zone", "is no zone")]);

        assert_eq!(
            refused(&status).to_string(),
            "--name: is required\n--timezone: is no zone"
        );
    }

    #[test]
    fn a_mistake_in_a_file_is_where_an_editor_finds_it() {
        let status = invalid(&[("3:1", "unknown key `opens`"), ("store", "is required")]);

        assert_eq!(
            refused_definition(Path::new("slots.toml"), &status).to_string(),
            "slots.toml:3:1: unknown key `opens`\nstore: is required"
        );
    }

    #[test]
    fn what_has_no_violations_has_its_message() {
        let status = Status::not_found("there is no stores/7");

        assert_eq!(refused(&status).to_string(), "there is no stores/7");
        assert_eq!(
            refused_definition(Path::new("slots.toml"), &status).to_string(),
            "there is no stores/7"
        );
    }
}
