//! What must not stand on a command line: everybody on the machine can read it.

use std::ffi::OsStr;

use clap::{ArgMatches, Command, error::ErrorKind, parser::ValueSource};
use url::Url;

/// A flag whose value may hold a secret. The same value in the environment is well.
#[derive(Clone, Copy, Debug)]
pub struct MayHoldSecret {
    /// The argument's id.
    pub argument: &'static str,
    /// Whether a value does.
    pub holds_secret: fn(&str) -> bool,
    /// What the secret is.
    pub secret: &'static str,
    /// Where it belongs.
    pub instead: &'static str,
}

pub const DATABASE_URL: MayHoldSecret = MayHoldSecret {
    argument: "database_url",
    holds_secret: has_password,
    secret: "a password",
    instead: "leave it out and set PGPASSWORD or PGPASSFILE, or put the whole URL into a file for --database-url-file",
};

/// Ends the program as clap does after a usage error (status 2) if a flag holds a secret.
pub fn refuse_secrets(command: &mut Command, matches: &ArgMatches, flags: &[MayHoldSecret]) {
    for flag in flags {
        if is_shown(matches, flag) {
            let MayHoldSecret {
                secret, instead, ..
            } = flag;
            let name = long_name(command, flag.argument);
            command
                .error(
                    ErrorKind::ValueValidation,
                    format!("{secret} in --{name} shows in the list of processes: {instead}"),
                )
                .exit();
        }
    }
}

/// How the flag is written, in the program or in the first subcommand that has it.
fn long_name(command: &Command, argument: &str) -> String {
    std::iter::once(command)
        .chain(command.get_subcommands())
        .flat_map(Command::get_arguments)
        .find(|other| other.get_id() == argument)
        .and_then(|found| found.get_long())
        .unwrap_or(argument)
        .to_owned()
}

/// Whether a secret was said in a flag, of the program or of a subcommand.
fn is_shown(matches: &ArgMatches, flag: &MayHoldSecret) -> bool {
    let argument = flag.argument;
    let here = matches.try_contains_id(argument).is_ok()
        && matches.value_source(argument) == Some(ValueSource::CommandLine)
        && matches
            .get_raw(argument)
            .into_iter()
            .flatten()
            .filter_map(OsStr::to_str)
            .any(flag.holds_secret);
    here || matches
        .subcommand()
        .is_some_and(|(_, matches)| is_shown(matches, flag))
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
    fn a_password_is_seen_in_a_flag_wherever_the_flag_is() {
        let url = || Arg::new("database_url").long("database-url");
        let command = Command::new("core-service")
            .arg(url())
            .subcommand(Command::new("bootstrap").arg(url()));
        let shown = |arguments: &[&str]| {
            let matches = command.clone().get_matches_from(arguments);
            is_shown(&matches, &DATABASE_URL)
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
            assert!(shown(wrong), "{wrong:?}");
        }
        for right in [
            &["", "--database-url=postgres://delivery@host/delivery"][..],
            &["", "--database-url=sqlite://file:name?mode=rwc"],
            &["", "bootstrap"],
            &[""],
        ] {
            assert!(!shown(right), "{right:?}");
        }
    }
}
