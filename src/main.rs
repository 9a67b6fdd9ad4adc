//! The `delivery` program: the all-in-one and the operator's commands.

mod banner;
mod cli;

use std::process::ExitCode;

use delivery::{Clock, Platform, Settings};
use process::{listen, logs, redacted, service_manager, shutdown, traces};

use crate::cli::Command;

#[global_allocator]
static ALLOCATOR: process::Allocator = process::Allocator;

#[tokio::main]
async fn main() -> ExitCode {
    let result = match cli::parse() {
        Command::Start(settings) => Box::pin(start(*settings)).await,
        Command::Stores(stores) => stores.run().await,
        Command::Clients(clients) => clients.run().await,
        Command::TimeSlots(time_slots) => time_slots.run().await,
        Command::Prices(prices) => prices.run().await,
        Command::Addresses(addresses) => addresses.run().await,
        Command::Zones(zones) => zones.run().await,
        Command::Couriers(couriers) => couriers.run().await,
        Command::Deliveries(deliveries) => deliveries.run().await,
        Command::Tasks(tasks) => tasks.run().await,
        Command::Incidents(incidents) => incidents.run().await,
        Command::Audit(audit) => audit.run().await,
        Command::Erase(erase) => erase.run().await,
        Command::Webhooks(webhooks) => webhooks.run().await,
        Command::Keys(keys) => keys.run().await,
        Command::MasterKey(master_key) => master_key.run(),
        Command::Migrate(migrate) => migrate.run().await,
        Command::Token(token) => token.run().await,
        Command::Health(health) => health.run().await,
        Command::Doctor(doctor) => Box::pin(doctor.run()).await,
        Command::Backup(backup) => backup.run().await,
        Command::Verify(verify) => verify.run().await,
        Command::Restore(restore) => restore.run().await,
    };
    logs::exit_code("", result)
}

async fn start(settings: Settings) -> anyhow::Result<()> {
    // Warnings only, to keep the `ready` line visible.
    logs::to_stderr("warn,audit=info", settings.logs);
    listen::raise_file_limit();
    redacted::forbid_memory_dumps();
    let shutdown = shutdown::on_signal()?;
    let data_dir = settings.data_dir.clone();
    let traces = traces::start(&settings.traces, env!("CARGO_PKG_NAME"))?;

    // It waits for a database that is not there yet.
    let starting = Platform::start(settings, Clock::system());
    let Some(platform) = shutdown.run_until_cancelled(starting).await else {
        return Ok(());
    };
    let platform = platform?;
    banner::print(&platform, &data_dir)?;
    service_manager::notify_ready();
    let result = platform.run(shutdown).await;
    traces.stop().await;
    result
}
