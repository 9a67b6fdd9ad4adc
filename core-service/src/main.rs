//! Runs one core, or prepares a platform for its first.

use clap::{Parser, Subcommand};
use core_service::{Config, CoreService, bootstrap};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// The core of the delivery platform: decides and remembers, over `PostgreSQL` or `SQLite`, and
/// serves gRPC. Any number of them share one `PostgreSQL`.
#[derive(Parser)]
#[command(name = "core-service", version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    config: Option<Config>,
}

#[derive(Subcommand)]
enum Command {
    /// Create the master key, the schema and the first API clients (an operator's and a
    /// dispatcher's), and print the clients once as JSON.
    Bootstrap {
        #[command(flatten)]
        config: Config,
    },
}

#[tokio::main]
async fn main() -> std::process::ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into()))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .init();
    match run(Arguments::parse()).await {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("core-service: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    match (arguments.command, arguments.config) {
        (Some(Command::Bootstrap { config }), _) => {
            let clients = bootstrap(&config).await?;
            #[expect(clippy::print_stdout, reason = "this is what the command is for")]
            {
                println!("{}", serde_json::to_string_pretty(&clients)?);
            }
            Ok(())
        }
        (None, Some(config)) => serve(config).await,
        (None, None) => anyhow::bail!("give --database-url; see --help"),
    }
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let core = CoreService::bind(config).await?;
    tracing::info!(addr = %core.addr(), "serving");
    let shutdown = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let asked = shutdown.clone();
    let signals = tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        asked.cancel();
    });
    core.run(shutdown).await?;
    signals.abort();
    Ok(())
}
