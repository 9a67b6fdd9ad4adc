//! Runs one webhook dispatcher until SIGTERM or Ctrl-C.

use anyhow::Context;
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;
use webhook_dispatcher::{Config, WebhookDispatcher};

#[tokio::main]
async fn main() -> std::process::ExitCode {
    match run(Config::parse()).await {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("webhook-dispatcher: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}

async fn run(config: Config) -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(
            EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info")),
        )
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .init();

    let dispatcher = WebhookDispatcher::new(config).context("cannot start")?;

    let shutdown = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let stopping = shutdown.clone();
    let signals = tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        stopping.cancel();
    });
    dispatcher.run(shutdown).await;
    signals.abort();
    Ok(())
}
