//! Parses command lines and their environment variables, alike in every program: an empty variable
//! is unset, booleans have the usual spellings, an error names the variable, and secrets on the
//! command line, which every user of the machine can read, are rejected.

use std::ffi::{OsStr, OsString};

use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, CommandFactory, FromArgMatches,
    builder::{BoolishValueParser, Resettable, StyledStr},
    error::{ContextKind, ContextValue, ErrorKind},
    parser::ValueSource,
};
use url::Url;

/// Parses the command line of a program. Exits with clap's usage error (status 2) if it is invalid
/// or one of the given flags contains a secret.
pub fn parse_without_secrets_in<T: CommandFactory + FromArgMatches>(secrets: &[SecretFlag]) -> T {
    let mut command = with_env_conventions(T::command());
    let arguments: Vec<_> = std::env::args_os().collect();
    let parsed = matches(&mut command, &arguments).and_then(|matches| {
        reject_secrets(&mut command, &matches, secrets)?;
        T::from_arg_matches(&matches)
    });
    parsed.unwrap_or_else(|error| error.exit())
}

/// Settings by their flags, and the defaults of the other flags: no environment variable counts.
///
/// # Panics
/// If the flags are not valid.
pub fn settings<T: Args>(flags: &[&str]) -> T {
    let command = T::augment_args(Command::new("settings").no_binary_name(true))
        .mut_args(|argument| argument.env(Resettable::Reset));
    command
        .try_get_matches_from(flags)
        .and_then(|matches| T::from_arg_matches(&matches))
        .expect("the flags should be valid")
}

/// Makes empty environment variables unset, and lets booleans be `1`, `yes`, `on` or `true`, and
/// their opposites.
#[must_use]
pub fn with_env_conventions(command: Command) -> Command {
    command
        .mut_args(|argument| {
            let argument = if variable(&argument).is_some_and(|value| value.is_empty()) {
                argument.env(Resettable::Reset)
            } else {
                argument
            };
            if matches!(argument.get_action(), ArgAction::SetTrue) {
                argument.value_parser(BoolishValueParser::new())
            } else {
                argument
            }
        })
        .mut_subcommands(with_env_conventions)
}

/// Like [`Command::try_get_matches_from_mut`]; the error of a value that is not on the command line
/// names its environment variable.
pub fn matches(command: &mut Command, arguments: &[OsString]) -> Result<ArgMatches, clap::Error> {
    command
        .try_get_matches_from_mut(arguments)
        .map_err(|mut error| {
            if let Some(variable) = variable_of(command, &error) {
                let tip = format!("the value is that of the environment variable {variable}");
                error.insert(
                    ContextKind::Suggested,
                    ContextValue::StyledStrs(vec![StyledStr::from(tip)]),
                );
            }
            error
        })
}

/// The environment variable with the value that an error rejects.
fn variable_of(command: &Command, error: &clap::Error) -> Option<String> {
    let (Some(ContextValue::String(rejected)), Some(ContextValue::String(usage))) = (
        error.get(ContextKind::InvalidValue),
        error.get(ContextKind::InvalidArg),
    ) else {
        return None;
    };
    let long = usage.strip_prefix("--")?.split(' ').next()?;
    let found = arguments_of(command).find(|argument| argument.get_long() == Some(long))?;
    let value = variable(found)?;
    let is_rejected = value.to_str().is_some_and(|value| value.contains(rejected));
    is_rejected.then(|| found.get_env().and_then(OsStr::to_str).map(str::to_owned))?
}

fn variable(argument: &Arg) -> Option<OsString> {
    std::env::var_os(argument.get_env()?)
}

/// The arguments of the program and of its subcommands.
fn arguments_of(command: &Command) -> impl Iterator<Item = &Arg> {
    std::iter::once(command)
        .chain(command.get_subcommands())
        .flat_map(Command::get_arguments)
}

/// A flag whose value may contain a secret. The same value is accepted from the environment.
#[derive(Clone, Copy, Debug)]
pub struct SecretFlag {
    /// The id of the argument.
    pub argument: &'static str,
    /// Whether a value contains a secret.
    pub contains_secret: fn(&str) -> bool,
    /// The kind of secret, for the error message.
    pub secret_kind: &'static str,
    /// What to do instead, for the error message.
    pub remedy: &'static str,
}

pub const DATABASE_URL: SecretFlag = SecretFlag {
    argument: "database_url",
    contains_secret: |url| {
        Url::parse(url).is_ok_and(|url| {
            url.password().is_some() || url.query_pairs().any(|(name, _)| name == "password")
        })
    },
    secret_kind: "a password",
    remedy: "leave it out and set PGPASSWORD or PGPASSFILE, or put the whole URL into a file for --database-url-file",
};

/// Fails if a flag on the command line contains a secret.
pub fn reject_secrets(
    command: &mut Command,
    matches: &ArgMatches,
    flags: &[SecretFlag],
) -> Result<(), clap::Error> {
    let Some(flag) = flags.iter().find(|flag| contains_secret(matches, flag)) else {
        return Ok(());
    };
    let SecretFlag {
        secret_kind,
        remedy,
        ..
    } = flag;
    let found = arguments_of(command).find(|argument| argument.get_id() == flag.argument);
    let name = found.and_then(Arg::get_long).unwrap_or(flag.argument);
    let message = format!("{secret_kind} in --{name} is visible in the process list: {remedy}");
    Err(command.error(ErrorKind::ValueValidation, message))
}

/// Whether the command line of the program or of a subcommand contains a secret in a flag.
fn contains_secret(matches: &ArgMatches, flag: &SecretFlag) -> bool {
    let argument = flag.argument;
    let is_in_this_command = matches.try_contains_id(argument).is_ok()
        && matches.value_source(argument) == Some(ValueSource::CommandLine)
        && matches
            .get_raw(argument)
            .into_iter()
            .flatten()
            .filter_map(OsStr::to_str)
            .any(flag.contains_secret);
    is_in_this_command
        || matches
            .subcommand()
            .is_some_and(|(_, matches)| contains_secret(matches, flag))
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn settings_are_the_flags_and_the_defaults_of_the_others_in_any_environment() {
        #[derive(Args, Debug, PartialEq)]
        struct Paths {
            /// Cargo sets the variable.
            #[arg(long, env = "CARGO_MANIFEST_DIR", default_value = "default")]
            variable: String,
            #[arg(long, default_value = "default")]
            flag: String,
        }

        let expected = Paths {
            variable: "default".to_owned(),
            flag: "given".to_owned(),
        };
        assert_eq!(settings::<Paths>(&["--flag=given"]), expected);
    }

    #[test]
    fn a_password_is_found_in_a_flag_of_the_program_or_a_subcommand() {
        let url = || Arg::new("database_url").long("database-url");
        let command = Command::new("core-service")
            .arg(url())
            .subcommand(Command::new("bootstrap").arg(url()));
        let is_found = |arguments: &[&str]| {
            let matches = command.clone().get_matches_from(arguments);
            contains_secret(&matches, &DATABASE_URL)
        };

        for wrong in [
            &["", "--database-url=postgres://delivery:pass@host/delivery"][..],
            &[
                "",
                "--database-url",
                "postgres://host/delivery?password=pass",
            ],
            &["", "bootstrap", "--database-url=postgres://:pass@host/x"],
        ] {
            assert!(is_found(wrong), "{wrong:?}");
        }
        for right in [
            &["", "--database-url=postgres://delivery@host/delivery"][..],
            &["", "--database-url=sqlite://file:name?mode=rwc"],
            &["", "bootstrap"],
            &[""],
        ] {
            assert!(!is_found(right), "{right:?}");
        }
    }
}
