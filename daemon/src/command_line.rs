//! What must not stand on a command line: everybody on the machine can read it.

use std::ffi::OsStr;

use clap::{ArgMatches, Command, error::ErrorKind, parser::ValueSource};
use url::Url;

/// Ends the program as clap does after a usage error (status 2) if a flag's URL holds a
/// password. The same URL in the environment is well.
pub fn refuse_password(command: &mut Command, matches: &ArgMatches, argument: &str) {
    if is_shown(matches, argument) {
        let flag = argument.replace('_', "-");
        command
            .error(
                ErrorKind::ValueValidation,
                format!(
                    "a password in --{flag} shows in the list of processes: leave it out and set PGPASSWORD or PGPASSFILE, or put the whole URL into a file for --{flag}-file"
                ),
            )
            .exit();
    }
}

/// Whether a password was said in a flag, of the program or of a subcommand.
fn is_shown(matches: &ArgMatches, argument: &str) -> bool {
    let here = matches.try_contains_id(argument).is_ok()
        && matches.value_source(argument) == Some(ValueSource::CommandLine)
        && matches
            .get_raw(argument)
            .into_iter()
            .flatten()
            .filter_map(OsStr::to_str)
            .any(has_password);
    here || matches
        .subcommand()
        .is_some_and(|(_, matches)| is_shown(matches, argument))
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
            is_shown(&matches, "database_url")
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
