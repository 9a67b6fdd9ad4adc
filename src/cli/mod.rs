//! The command line: `start`, which is also the default command, commands that call core over gRPC,
//! and commands for the files and processes of this host.

mod access;
mod addresses;
mod audit;
mod backup;
mod calls;
mod clients;
mod couriers;
mod definition;
mod deliveries;
mod doctor;
mod erase;
mod errors;
mod health;
mod http;
mod id;
mod incidents;
mod keys;
mod location;
mod output;
mod prices;
mod stores;
mod tasks;
mod time_slots;
mod token;
mod webhooks;
mod zones;

use std::{ffi::OsString, path::PathBuf};

use clap::{
    Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, builder::Resettable,
};
use delivery::{DEFAULT_DATA_DIR, Settings};
use process::{
    command_line::{self, reject_secrets, with_env_conventions},
    version::version,
};

use self::access::CoreCommand;

const EXAMPLES: &str = "\
Examples:
  delivery                                      start on http://127.0.0.1:8080, data in ./delivery-data
  delivery --rest-listen 127.0.0.1:0            start on any free port, written to ready.json
  delivery stores create --name 'Book shop' --address '45 Rue d’Ulm, Paris'
  delivery clients create --store ID --name Website --scopes 'deliveries tasks'
  delivery tasks complete /api/tasks/ID         complete a task as a courier
  delivery backup /mnt/backups/today.backup     back up the database while it is in use
  curl -H \"Authorization: Bearer $(delivery token)\" http://127.0.0.1:8080/api/deliveries
  delivery doctor                               find out why it does not start

The operator's commands call the all-in-one that runs on --data-dir (by default ./delivery-data).
With --core-url they call any core, with the credentials in DELIVERY_OPERATOR_KEY and
DELIVERY_OPERATOR_SECRET.

A command that changes something has an idempotency key, unless it can simply be run again. If core
does not confirm the change, the command retries it once; then it prints how to repeat it without
doing it twice.

Exit status: 0 success, 1 failure (the reason is on stderr), 2 invalid usage.";

/// A local delivery platform: stores create deliveries over a JSON-LD REST API, couriers complete
/// tasks over gRPC, and signed webhooks notify the stores.
///
/// Without a command, starts the whole platform in one process, with a demo store.
#[derive(Parser)]
#[command(version = version(), after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(flatten)]
    settings: Settings,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start the whole platform (same as `delivery` without a command)
    Start(Box<Settings>),
    /// Manage stores
    Stores(CoreCommand<stores::Command>),
    /// Manage API clients and their secrets
    Clients(CoreCommand<clients::Command>),
    /// Manage the time slots that stores offer
    TimeSlots(CoreCommand<time_slots::Command>),
    /// Manage and explain price lists
    Prices(CoreCommand<prices::Command>),
    /// Import and search addresses for geocoding
    Addresses(CoreCommand<addresses::Command>),
    /// Manage the zones that price rules and service areas use
    Zones(CoreCommand<zones::Command>),
    /// Manage couriers, and show their lists of a day
    Couriers(CoreCommand<couriers::Command>),
    /// Show and cancel the deliveries of all stores, and revoke the links of their tracking pages
    Deliveries(CoreCommand<deliveries::Command>),
    /// Show, assign and change tasks
    Tasks(CoreCommand<tasks::Command>),
    /// List and close incidents: what couriers and dispatch reported of tasks
    Incidents(CoreCommand<incidents::Command>),
    /// Erase the personal data of deliveries permanently
    ///
    /// Erases street, names, telephone number, comments, tags and metadata of both tasks, incidents, stored
    /// responses, and the receivers' responses to notifications. Keeps prices, times,
    /// weights, packages, references, towns and postcodes. A delivery that is still to be made loses its
    /// addresses too.
    Erase(erase::Erase),
    /// Inspect, test and repair webhooks
    Webhooks(CoreCommand<webhooks::Command>),
    /// List what operators and dispatch changed, and whose personal data they read
    Audit(CoreCommand<audit::Command>),
    /// Manage the keys that sign access tokens, and re-encrypt stored secrets
    Keys(CoreCommand<keys::Command>),
    /// List or change the master keys of the all-in-one, and print their ids, the current one first
    ///
    /// A running `delivery` reads the file again.
    MasterKey(keys::MasterKey),
    /// Migrate a database to the schema of this version
    ///
    /// A core does the same when it starts, and `core-service bootstrap` when it creates a platform.
    Migrate(backup::Migrate),
    /// Print an access token of the REST API
    ///
    /// The token is that of the API client in `DELIVERY_API_KEY` and `DELIVERY_API_SECRET`, or without
    /// them of a running demo's client.
    #[command(after_help = token::EXAMPLES)]
    Token(token::Token),
    /// Check whether a program is ready, for container health checks
    ///
    /// Exits with 0 if `GET /readyz` is answered with 200 within 2 s, else with 1 and the reason.
    Health(health::Health),
    /// Check the database, its schema and clock, the master key and the certificate of the gRPC API, and
    /// say what to fix
    ///
    /// Changes nothing, so that it can run before the first start and beside a running platform. A
    /// failure keeps the platform from starting or from serving; a warning does not.
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(Box<doctor::Doctor>),
    /// Back up a platform over `SQLite` into one file, while it serves
    ///
    /// The file contains everything that was acknowledged before, and is readable by its owner only. It
    /// appears once it is complete. Not included: the gazetteer, whose addresses can be imported again,
    /// and, unless asked for, the master key, without which the file cannot be restored.
    Backup(backup::Backup),
    /// Verify a backup: its checksum, its consistency and its schema; or a `PostgreSQL` database in use
    Verify(backup::Verify),
    /// Restore a backup to a new data directory, from which `delivery` can be started
    Restore(backup::Restore),
}

/// The flag of commands that work on an all-in-one's files.
#[derive(Args, Debug)]
pub(crate) struct DataDirFlag {
    /// Data directory of the all-in-one
    #[arg(long, env = "DELIVERY_DATA_DIR", value_name = "DIR", default_value = DEFAULT_DATA_DIR)]
    pub(crate) data_dir: PathBuf,
}

/// Parses the command line. Exits with status 2 if it is invalid.
pub(crate) fn parse() -> Command {
    let arguments: Vec<_> = std::env::args_os().collect();
    parse_from(&arguments).unwrap_or_else(|error| error.exit())
}

fn parse_from(arguments: &[OsString]) -> Result<Command, clap::Error> {
    let mut command = with_env_conventions(CommandLine::command());
    // An invalid variable of `start` is no error of another command.
    let first = arguments.get(1).and_then(|argument| argument.to_str());
    if first.is_some_and(|first| command.find_subcommand(first).is_some()) {
        command = command.mut_args(|argument| argument.env(Resettable::Reset));
    }
    let matches = command_line::matches(&mut command, arguments)?;
    reject_secrets(&mut command, &matches, &core_service::Config::SECRET_FLAGS)?;
    let command_line = CommandLine::from_arg_matches(&matches)?;
    Ok(command_line
        .command
        .unwrap_or_else(|| Command::Start(Box::new(command_line.settings))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_arguments(arguments: &[&str]) -> Result<Command, String> {
        let arguments: Vec<_> = ["delivery"]
            .iter()
            .chain(arguments)
            .map(OsString::from)
            .collect();
        parse_from(&arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_definition_is_valid() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn the_help_of_a_removal_says_how_to_see_that_a_master_key_is_unused() {
        let Err(help) = parse_arguments(&["master-key", "remove", "--help"]) else {
            panic!("no help");
        };
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");

        for part in [
            "once `delivery keys rotate-master` lists it under `unused keys`, and the price quotes",
            "it stays in <FILE>.removed",
        ] {
            assert!(help.contains(part), "{help}");
        }
    }

    #[test]
    fn the_help_explains_the_definitions_that_operators_write() {
        for (command, terms) in [
            (
                "time-slots",
                &[
                    "name",
                    "opening_hours",
                    "interval",
                    "prior_notice",
                    "same_day_cutoff",
                    "previous_day_cutoff",
                    "working_days_only",
                    "slot_length",
                    "closed",
                    "capacity",
                    "slots",
                ][..],
            ),
            ("prices", &["quote_expiry", "packages", "in_zone"]),
        ] {
            for subcommand in ["apply", "check"] {
                let Err(help) = parse_arguments(&[command, subcommand, "--help"]) else {
                    panic!("{command} {subcommand}");
                };
                for term in terms {
                    assert!(help.contains(term), "{command} {subcommand}: {term}");
                }
            }
        }
    }

    #[test]
    fn a_flag_before_a_command_is_rejected() {
        for command in ["start", "stores"] {
            let arguments = ["--rest-listen=127.0.0.1:0", command, "list"];
            let Err(error) = parse_arguments(&arguments[..if command == "start" { 2 } else { 3 }])
            else {
                panic!("{command}");
            };
            let conflict =
                format!("the subcommand '{command}' cannot be used with '--rest-listen <ADDR>'");
            assert!(error.contains(&conflict), "{error}");
        }
    }
}
