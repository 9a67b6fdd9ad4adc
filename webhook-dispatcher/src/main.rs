//! Runs a webhook dispatcher.

use std::process::ExitCode;

use process::{command_line, listen, logs, redacted, service_manager, shutdown, traces};
use webhook_dispatcher::{Config, WebhookDispatcher};

#[global_allocator]
static ALLOCATOR: process::Allocator = process::Allocator;

#[tokio::main]
async fn main() -> ExitCode {
    let config: Config = command_line::parse_without_secrets_in(&[]);
    logs::to_stderr("info", config.logs);
    logs::exit_code("webhook-dispatcher: ", run(config).await)
}

async fn run(config: Config) -> anyhow::Result<()> {
    listen::raise_file_limit();
    redacted::forbid_memory_dumps();
    let traces = traces::start(&config.traces, env!("CARGO_PKG_NAME"))?;
    let dispatcher = WebhookDispatcher::bind(&config)?;
    let shutdown = shutdown::on_signal()?;
    service_manager::notify_ready();
    dispatcher.run(shutdown).await;
    traces.stop().await;
    Ok(())
}
