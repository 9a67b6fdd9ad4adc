//! Runs one rest-gateway.

use std::process::ExitCode;

use process::{command_line, file_descriptors, logs, service_manager, shutdown, traces};
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
    let limit = file_descriptors::raise_limit();
    file_descriptors::warn_if_too_low(config.max_connections, limit, "--max-connections");
    let traces = traces::start(&config.traces, env!("CARGO_PKG_NAME"))?;
    let gateway = RestGateway::bind(config)?;
    let shutdown = shutdown::on_signal()?;
    service_manager::notify_ready();
    gateway.run(shutdown).await;
    traces.stop().await;
    Ok(())
}
