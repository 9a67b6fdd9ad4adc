//! Converts core's errors into messages for the operator.

use std::path::Path;

use core_client::{is_caused_by, is_from_core};
use rest_gateway::ViolationCollector;
use tonic::{Code, Status, TimeoutExpired};
use tonic_types::StatusExt;

/// The error of a request: its violations, one per line, or its message.
pub(crate) fn call_error(status: &Status) -> anyhow::Error {
    explained(status, |field, description| match field {
        // The description names the file.
        "content" => description.to_owned(),
        _ => format!("{}: {description}", flag(field)),
    })
}

/// The flag of a request's field; the field itself if it has none.
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
        Some("colour") => "--colour",
        Some("logo") => "--logo",
        Some("closed_with") => "--note",
        Some("idempotency") => "--idempotency-key",
        Some("default_address") if field.ends_with("lat_lng") => "--lat-lng",
        Some("default_address") => "--address",
        _ => field,
    }
}

/// The error of a delivery: its violations, one per line, with the payload's property paths.
pub(crate) fn payload_error(collector: &ViolationCollector, status: &Status) -> anyhow::Error {
    explained(status, |field, description| {
        let path = collector.path(field);
        if path.is_empty() {
            description.to_owned()
        } else {
            format!("{path}: {description}")
        }
    })
}

/// The error of a definition: its violations, one per line, in the format of compilers.
pub(crate) fn definition_error(file: &Path, status: &Status) -> anyhow::Error {
    let info = status.get_details_error_info();
    if info.is_some_and(|info| info.reason == "MESSAGE_TOO_LARGE") {
        let file = file.display();
        return anyhow::anyhow!("{file} is larger than the 4 MiB that core accepts: shorten it");
    }
    explained(status, |position, description| {
        let starts_with_line = position.starts_with(|first: char| first.is_ascii_digit());
        if starts_with_line {
            format!("{}:{position}: {description}", file.display())
        } else {
            format!("{position}: {description}")
        }
    })
}

/// The violations as lines, or the message of the request's error.
fn explained(status: &Status, line: impl Fn(&str, &str) -> String) -> anyhow::Error {
    let bad_request = status.get_details_bad_request();
    let lines: Vec<_> = bad_request
        .iter()
        .flat_map(|bad_request| &bad_request.field_violations)
        .map(|violation| line(&violation.field, &violation.description))
        .collect();
    let message = status.message();
    anyhow::anyhow!(match status.code() {
        _ if !lines.is_empty() => lines.join("\n"),
        Code::Unavailable if !is_from_core(status) => format!("core is unavailable: {message}"),
        Code::Cancelled if is_caused_by::<TimeoutExpired>(status) => {
            "core did not respond in time: try again, or call another core".to_owned()
        }
        Code::PermissionDenied => format!("the operator's client has no permission: {message}"),
        _ => message.to_owned(),
    })
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
    fn every_violation_has_its_own_line() {
        let status = invalid(&[
            ("display_name", "is required"),
            ("time_zone", "is not a time zone"),
        ]);

        assert_eq!(
            call_error(&status).to_string(),
            "--name: is required\n--timezone: is not a time zone"
        );
    }

    #[test]
    fn a_violation_in_a_file_has_a_clickable_position() {
        let status = invalid(&[("3:1", "unknown key `opens`"), ("store", "is required")]);

        assert_eq!(
            definition_error(Path::new("slots.toml"), &status).to_string(),
            "slots.toml:3:1: unknown key `opens`\nstore: is required"
        );
    }

    #[test]
    fn a_call_without_a_response_in_time_says_what_to_do() {
        let status = Status::from_error(Box::new(TimeoutExpired(())));

        assert_eq!(
            call_error(&status).to_string(),
            "core did not respond in time: try again, or call another core"
        );
    }

    #[test]
    fn an_error_without_violations_has_its_message() {
        let status = Status::not_found("there is no stores/7");

        assert_eq!(call_error(&status).to_string(), "there is no stores/7");
        assert_eq!(
            definition_error(Path::new("slots.toml"), &status).to_string(),
            "there is no stores/7"
        );
    }
}
