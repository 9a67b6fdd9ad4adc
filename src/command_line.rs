//! The command line: `start`, which is also what a bare `delivery` does, and the operator's
//! commands.

use std::ffi::{OsStr, OsString};

use clap::{
    Arg, ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand,
    builder::Resettable, error::ErrorKind, parser::ValueSource,
};
use delivery::Settings;
use process::command_line::refuse_secrets;

use crate::operator::{
    addresses, clients, keys, prices, stores, tasks, time_slots, webhooks, zones,
};

const EXAMPLES: &str = "\
Examples:
  delivery                                      start on http://127.0.0.1:8080, data in ./delivery-data
  delivery --rest-listen 127.0.0.1:0            start on any free port; see ready.json for which
  delivery stores create --name 'Book shop' --address '45 Rue d’Ulm, Paris'
  delivery clients create --store ID --name Website --scopes 'deliveries tasks'
  delivery tasks complete /api/tasks/ID         what a courier does

The operator's commands call the all-in-one whose data directory they are given (./delivery-data
unless told otherwise), or, with --core-url, any core: the credentials are then taken from
DELIVERY_OPERATOR_KEY and DELIVERY_OPERATOR_SECRET.

Exit status: 0 done, 1 refused or failed (the reason is on stderr), 2 wrong usage.";

/// A local delivery platform: shops create deliveries over a JSON-LD REST API, couriers complete
/// tasks over gRPC, signed webhooks tell the shops.
///
/// Without a command it starts the whole platform in one process, with a demo shop to try it on.
#[derive(Parser)]
#[command(version, after_help = EXAMPLES)]
struct CommandLine {
    #[command(flatten)]
    settings: Settings,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start the whole platform (what a bare `delivery` does)
    Start(Box<Settings>),
    /// The shops
    Stores(stores::Stores),
    /// The programs that may call, and their secrets
    Clients(clients::Clients),
    /// The windows a store offers
    TimeSlots(time_slots::TimeSlots),
    /// The rules by which a store's deliveries are priced
    Prices(prices::Prices),
    /// What texts are found among
    Addresses(addresses::Addresses),
    /// The areas that price rules speak of
    Zones(zones::Zones),
    /// What couriers do
    Tasks(tasks::Tasks),
    /// Where shops are told of events, and how that went
    Webhooks(webhooks::Webhooks),
    /// What access tokens are signed with
    Keys(keys::Keys),
}

/// What the program was called to do. Ends it, with status 2, if that can't be told.
pub(crate) fn read() -> Command {
    let arguments: Vec<_> = std::env::args_os().collect();
    read_from(&arguments).unwrap_or_else(|error| error.exit())
}

fn read_from(arguments: &[OsString]) -> Result<Command, clap::Error> {
    let mut command = CommandLine::command();
    if let Some(name) = named_command(arguments) {
        // What the all-in-one is set to in the environment is no concern of a command.
        command = command.mut_args(|argument| argument.env(Resettable::Reset));
        let matches = command.try_get_matches_from_mut(arguments)?;
        if let Some(data_dir) = before_the_command(&mut command, &matches, &name)? {
            command = command.mut_subcommand(&name, |subcommand| {
                subcommand.mut_args(|argument| with_data_dir(argument, data_dir))
            });
        }
    }
    let matches = command.try_get_matches_from_mut(arguments)?;
    refuse_secrets(
        &mut command,
        &matches,
        &core_service::Config::MAY_HOLD_SECRETS,
    );
    let command_line = CommandLine::from_arg_matches(&matches)?;
    Ok(command_line
        .command
        .unwrap_or_else(|| Command::Start(Box::new(command_line.settings))))
}

/// The command that is named, whatever else may be wrong.
fn named_command(arguments: &[OsString]) -> Option<String> {
    let matches = CommandLine::command()
        .mut_args(|argument| argument.env(Resettable::Reset))
        .disable_help_flag(true)
        .disable_version_flag(true)
        .ignore_errors(true)
        .try_get_matches_from(arguments)
        .ok()?;
    matches.subcommand_name().map(str::to_owned)
}

/// The data directory, if it is named before the command; nothing else may be.
fn before_the_command(
    command: &mut clap::Command,
    matches: &ArgMatches,
    name: &str,
) -> Result<Option<&'static OsStr>, clap::Error> {
    let misplaced = command
        .get_arguments()
        .find(|argument| argument.get_id() != "data_dir" && is_given(matches, argument))
        .and_then(|argument| argument.get_long().map(str::to_owned));
    if let Some(flag) = misplaced {
        return Err(command.error(
            ErrorKind::ArgumentConflict,
            format!("--{flag} stands before `{name}`: the flags of a command go after it"),
        ));
    }
    let given = matches.value_source("data_dir") == Some(ValueSource::CommandLine);
    let data_dir = matches
        .get_raw("data_dir")
        .and_then(|mut values| values.next())
        .filter(|_| given);
    // Kept for ever, which is as long as this process.
    Ok(data_dir.map(|path| &*Box::leak(path.to_owned().into_boxed_os_str())))
}

fn is_given(matches: &ArgMatches, argument: &Arg) -> bool {
    matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
}

/// Said before the command, it goes before the environment, but not before the same flag after
/// the command.
fn with_data_dir(argument: Arg, data_dir: &'static OsStr) -> Arg {
    if argument.get_id() == "data_dir" {
        argument.env(Resettable::Reset).default_value(data_dir)
    } else {
        argument
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Command, String> {
        let arguments: Vec<_> = ["delivery"]
            .iter()
            .chain(arguments)
            .map(OsString::from)
            .collect();
        read_from(&arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_sound() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn start_has_its_flags_on_either_side() {
        for arguments in [
            &["--data-dir=here"][..],
            &["start", "--data-dir=here"],
            &["--data-dir=here", "start"],
            &["--data-dir=there", "start", "--data-dir", "here"],
        ] {
            let Ok(Command::Start(settings)) = parsed(arguments) else {
                panic!("{arguments:?}");
            };
            assert_eq!(settings.data_dir, Path::new("here"), "{arguments:?}");
        }
    }

    #[test]
    fn a_flag_of_the_all_in_one_before_a_command_is_sent_behind_it() {
        for command in ["start", "stores"] {
            let arguments = ["--rest-listen=127.0.0.1:0", command, "list"];
            let Err(error) = parsed(&arguments[..if command == "start" { 2 } else { 3 }]) else {
                panic!("{command}");
            };
            assert!(
                error.contains(&format!(
                    "--rest-listen stands before `{command}`: the flags of a command go after it"
                )),
                "{error}"
            );
        }
    }
}
