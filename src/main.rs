//! The command line: `start`, which is also what a bare `delivery` does, and the operator's
//! commands.

mod banner;
mod operator;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use delivery::{Clock, Platform, Settings};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

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
#[command(version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(flatten)]
    settings: Settings,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
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

#[tokio::main]
async fn main() -> ExitCode {
    let command_line = CommandLine::parse();
    let command = command_line
        .command
        .unwrap_or_else(|| Command::Start(Box::new(command_line.settings)));

    let result = match command {
        Command::Start(settings) => start(*settings).await,
        Command::Stores(stores) => stores.run().await,
        Command::Clients(clients) => clients.run().await,
        Command::TimeSlots(time_slots) => time_slots.run().await,
        Command::Prices(prices) => prices.run().await,
        Command::Addresses(addresses) => addresses.run().await,
        Command::Zones(zones) => zones.run().await,
        Command::Tasks(tasks) => tasks.run().await,
        Command::Webhooks(webhooks) => webhooks.run().await,
        Command::Keys(keys) => keys.run().await,
    };

    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", sentence(&error));
            ExitCode::FAILURE
        }
    }
}

/// The error and its causes, each said once: some messages tell their cause themselves.
fn sentence(error: &anyhow::Error) -> String {
    let mut sentence = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !sentence.contains(&cause) {
            sentence = format!("{sentence}: {cause}");
        }
    }
    sentence
}

async fn start(settings: Settings) -> anyhow::Result<()> {
    // Warnings unless RUST_LOG says otherwise: a first look belongs to the lines to paste.
    tracing_subscriber::fmt()
        .with_env_filter(
            EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn")),
        )
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .init();
    let shutdown = on_signal()?;
    let data_dir = settings.data_dir.clone();

    let platform = Platform::start(settings, Clock::system()).await?;
    banner::print(&platform, &data_dir).await?;
    platform.run(shutdown).await
}

/// What a shell expects of a process that a signal ended.
const INTERRUPTED: i32 = 130;

/// Cancelled by SIGTERM and Ctrl-C, from now on. A second one ends the process at once.
fn on_signal() -> std::io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let shutdown = CancellationToken::new();
    let signalled = shutdown.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        signalled.cancel();
        tracing::warn!("finishing what is in flight; Ctrl-C again ends it now");
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        std::process::exit(INTERRUPTED);
    });
    Ok(shutdown)
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow!("refused")
            .context("cannot connect: refused")
            .context("cannot start");

        assert_eq!(sentence(&error), "cannot start: cannot connect: refused");
    }

    #[test]
    fn the_command_line_is_sound() {
        <CommandLine as clap::CommandFactory>::command().debug_assert();
    }
}
