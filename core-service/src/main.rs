//! Runs a core, or bootstraps a platform.

use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
};

use anyhow::ensure;
use clap::{Parser, Subcommand};
use core_service::{ClientFiles, Config, CoreService, MasterKeyCommand, bootstrap};
use process::{
    command_line, listen,
    logs::{self, LogConfig},
    redacted, service_manager, shutdown, traces,
    version::version,
};

#[global_allocator]
static ALLOCATOR: process::Allocator = process::Allocator;

/// The core of the delivery platform: implements its rules over `PostgreSQL` or `SQLite` and serves
/// gRPC. Any number of cores can share one `PostgreSQL` database.
#[derive(Parser)]
#[command(
    name = "core-service",
    version = version(),
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    config: Config,
}

#[derive(Subcommand)]
enum Command {
    /// Create the master key, the schema and the first API clients (operator and dispatcher), and
    /// print the credentials of the clients as JSON, or write them to files. They cannot be printed again.
    Bootstrap {
        /// Create two more clients for a platform that has been set up, because the operator's
        /// secret is lost. Existing clients stay valid: disable the lost ones afterwards.
        #[arg(long)]
        again: bool,
        /// Directory for `clients.json`, the credentials, and `dispatcher-secret`, for a dispatcher's
        /// `--client-secret-file` (mode 0600); created if missing. Default: none, they are printed.
        /// Example: `/etc/delivery`.
        #[arg(long, value_name = "DIR")]
        output: Option<PathBuf>,
        /// Print the secrets also on a terminal. Default: no.
        #[arg(long, conflicts_with = "output")]
        show_secrets: bool,
        #[command(flatten)]
        config: Box<Config>,
    },
    /// List or change the master keys in a file, and print their ids, the current one first
    ///
    /// A running core reads the file again when it changes.
    MasterKey {
        /// File with the master keys. Example: `/etc/delivery/master.key`.
        #[arg(
            long,
            env = "DELIVERY_MASTER_KEY_FILE",
            value_name = "FILE",
            default_value = "master.key",
            global = true
        )]
        master_key_file: PathBuf,
        #[command(subcommand)]
        command: MasterKeyCommand,
    },
}

#[tokio::main]
async fn main() -> std::process::ExitCode {
    let arguments: Arguments = command_line::parse_without_secrets_in(&Config::SECRET_FLAGS);
    let logs = match &arguments.command {
        Some(Command::Bootstrap { config, .. }) => config.logs,
        Some(Command::MasterKey { .. }) => LogConfig::default(),
        None => arguments.config.logs,
    };
    // sqlx logs what PostgreSQL only notes as information.
    logs::to_stderr("info,sqlx=warn", logs);
    logs::exit_code("core-service: ", run(arguments).await)
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.command {
        Some(Command::Bootstrap {
            again,
            output,
            show_secrets,
            config,
        }) => {
            ensure!(
                output.is_some() || show_secrets || !io::stdout().is_terminal(),
                "the secrets of the clients would be shown on this terminal: write them to files with --output DIR, or set --show-secrets"
            );
            // Before the bootstrap: credentials that cannot be written would be lost.
            let files = output.as_deref().map(ClientFiles::create).transpose()?;
            let clients = bootstrap(&config, again).await?;
            #[expect(clippy::print_stdout, reason = "the output of the command")]
            match files {
                Some(files) => {
                    for path in files.write(&clients)? {
                        println!("{}", path.display());
                    }
                }
                None => println!("{}", serde_json::to_string_pretty(&clients)?),
            }
            Ok(())
        }
        Some(Command::MasterKey {
            master_key_file,
            command,
        }) => {
            #[expect(clippy::print_stdout, reason = "the output of the command")]
            for id in command.run(&master_key_file)? {
                println!("{id}");
            }
            Ok(())
        }
        None => serve(arguments.config).await,
    }
}

async fn serve(config: Config) -> anyhow::Result<()> {
    listen::raise_file_limit();
    redacted::forbid_memory_dumps();
    let traces = traces::start(&config.traces, env!("CARGO_PKG_NAME"))?;
    let shutdown = shutdown::on_signal()?;
    // It waits for a database that is not there yet.
    let Some(core) = shutdown
        .run_until_cancelled(CoreService::bind(config))
        .await
    else {
        return Ok(());
    };
    let core = core?;
    service_manager::notify_ready();
    tracing::info!(addr = %core.addr(), "serving");
    let result = core.run(shutdown).await;
    traces.stop().await;
    Ok(result?)
}
