//! Rejects secrets on the command line, which every user of the machine can read.

use std::ffi::OsStr;

use clap::{ArgMatches, Command, error::ErrorKind, parser::ValueSource};
use url::Url;

/// A flag whose value may contain a secret. The same value is accepted from the environment.
#[derive(Clone, Copy, Debug)]
pub struct SecretFlag {
    /// The id of the argument.
    pub argument: &'static str,
    /// Whether a value contains a secret.
    pub contains_secret: fn(&str) -> bool,
    /// The kind of secret, for the error message.
    pub secret: &'static str,
    /// The alternative, for the error message.
    pub instead: &'static str,
}

pub const DATABASE_URL: SecretFlag = SecretFlag {
    argument: "database_url",
    contains_secret: has_password,
    secret: "a password",
    instead: "leave it out and set PGPASSWORD or PGPASSFILE, or put the whole URL into a file for --database-url-file",
};

/// Exits with clap's usage error (status 2) if a flag on the command line contains a secret.
pub fn reject_secrets(command: &mut Command, matches: &ArgMatches, flags: &[SecretFlag]) {
    for flag in flags {
        if contains_secret(matches, flag) {
            let SecretFlag {
                secret, instead, ..
            } = flag;
            let name = long_name(command, flag.argument);
            command
                .error(
                    ErrorKind::ValueValidation,
                    format!("{secret} in --{name} is visible in the process list: {instead}"),
                )
                .exit();
        }
    }
}

/// The long name of a flag of the program or of one of its subcommands.
fn long_name(command: &Command, argument: &str) -> String {
    std::iter::once(command)
        .chain(command.get_subcommands())
        .flat_map(Command::get_arguments)
        .find(|other| other.get_id() == argument)
        .and_then(|found| found.get_long())
        .unwrap_or(argument)
        .to_owned()
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

fn has_password(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| {
        url.password().is_some() || url.query_pairs().any(|(name, _)| name == "password")
    })
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

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
