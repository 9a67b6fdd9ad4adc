//! The output of a program to stderr: its logs, and the error that ends it.

use std::{fmt::Write as _, io::IsTerminal as _, process::ExitCode, time::Duration};

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogConfig {
    /// Format of the logs on stderr: `text`, `json` (one object per line), or `auto`, which is text on
    /// a terminal and JSON otherwise. Example: `text`
    #[arg(long, env = "DELIVERY_LOG_FORMAT", value_enum, default_value_t)]
    #[arg(hide_possible_values = true)]
    pub log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    #[default]
    Auto,
    Text,
    Json,
}

/// Logs to stderr by a filter such as `info`, which `RUST_LOG` overrides.
pub fn to_stderr(default_filter: &str, config: LogConfig) {
    let is_terminal = std::io::stderr().is_terminal();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(
            EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default_filter)),
        )
        .with_writer(std::io::stderr)
        .with_ansi(is_terminal)
        // Reporting that stderr cannot be written panics if stderr is a closed terminal.
        .log_internal_errors(false);
    match config.log_format {
        LogFormat::Auto if is_terminal => subscriber.init(),
        LogFormat::Text => subscriber.init(),
        LogFormat::Auto | LogFormat::Json => subscriber
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .init(),
    }
}

/// A duration in milliseconds, with a precision of microseconds.
#[expect(
    clippy::cast_precision_loss,
    reason = "53 bits of microseconds are 285 years"
)]
pub fn milliseconds(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1000.0
}

/// The exit code of a program, whose error is printed after a prefix.
pub fn exit_code(prefix: &str, result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{prefix}{}", error_message(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error and its sources.
pub fn error_chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", error_chain(source)),
        None => error.to_string(),
    }
}

/// The error and its causes, [`printable`]. A cause that an outer message already contains is not
/// repeated.
pub fn error_message(error: &anyhow::Error) -> String {
    let mut message = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !message.contains(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    printable(&message)
}

/// A text in which characters that a terminal would execute, that change the direction of the text, or that
/// are not visible, are escaped as in JSON; not joiners, which letters and emoji need. Names and responses that programs print come from other parties.
pub fn printable(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        // Bidirectional controls (UAX #9 §2), separators of lines, and other marks. All of these are in the Basic
        // Multilingual Plane.
        let is_format = matches!(
            char,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        );
        if is_format || char.is_control() && !matches!(char, '\n' | '\t') {
            let code = u32::from(char);
            write!(escaped, "\\u{code:04x}").expect("writing to a string does not fail");
        } else {
            escaped.push(char);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn what_a_terminal_would_execute_is_escaped() {
        assert_eq!(
            printable("a\tb\nÉpicerie 店\x1b[2J\x07\r\u{9b}31m\u{7f}\u{202e}gpj\u{200b}\u{2028}"),
            "a\tb\nÉpicerie 店\\u001b[2J\\u0007\\u000d\\u009b31m\\u007f\\u202egpj\\u200b\\u2028"
        );
        let json = printable("\"\u{9b}\u{2069}\"");
        assert_eq!(json, r#""\u009b\u2069""#);
        assert_eq!(error_message(&anyhow!("no \x1b]0;x")), "no \\u001b]0;x");
    }

    #[test]
    fn a_cause_is_reported_once() {
        let error = anyhow!("refused")
            .context("cannot connect: refused")
            .context("cannot start");

        assert_eq!(
            error_message(&error),
            "cannot start: cannot connect: refused"
        );
    }

    #[test]
    fn a_duration_is_logged_in_milliseconds_and_their_fraction() {
        for (micros, expected) in [(0, "0"), (500, "0.5"), (1_234_567, "1234.567")] {
            let shown = milliseconds(Duration::from_micros(micros)).to_string();
            assert_eq!(shown, expected);
        }
    }
}
