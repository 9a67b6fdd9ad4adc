//! Runs one rest-gateway.

use std::process::ExitCode;

use process::{command_line, listen, logs, redacted, service_manager, shutdown, traces};
use rest_gateway::{Config, RestGateway};

#[global_allocator]
static ALLOCATOR: process::Allocator = process::Allocator;

#[tokio::main]
async fn main() -> ExitCode {
    let config: Config = command_line::parse_without_secrets_in(&[]);
    logs::to_stderr("info", config.logs);
    logs::exit_code("rest-gateway: ", run(config).await)
}

async fn run(config: Config) -> anyhow::Result<()> {
    listen::raise_file_limit();
    redacted::forbid_memory_dumps();
    let traces = traces::start(&config.traces, env!("CARGO_PKG_NAME"))?;
    let gateway = RestGateway::bind(config)?;
    let shutdown = shutdown::on_signal()?;
    service_manager::notify_ready();
    gateway.run(shutdown).await;
    traces.stop().await;
    Ok(())
}
