//! `delivery clients`: the API clients.

use std::time::Duration;

use clap::Subcommand;
use process::duration;
use proto::{
    CreateApiClientRequest, DisableApiClientRequest, ListApiClientsRequest,
    RotateApiClientSecretRequest, api_client::TaskStatus, iri::Collection,
};

use crate::cli::{
    access::CoreCommand,
    id,
    location::AddressFlags,
    output::{self, View, enum_name, instant, non_empty},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create an API client and print its secret, which is shown only once
    Create {
        /// Store of the client; omit for the platform's own programs
        #[arg(long, value_name = "ID", value_parser = id::parser(Collection::Stores))]
        store: Option<String>,
        /// Courier as whom the client works, with the scope courier
        #[arg(long, value_name = "ID", value_parser = id::parser(Collection::Couriers))]
        courier: Option<String>,
        /// Display name
        #[arg(long)]
        name: String,
        /// Scopes, separated by spaces: deliveries, tasks; for the platform's own programs, which
        /// have no store: tasks:all, dispatch, dispatch:read, courier, notifications,
        /// platform:read, admin
        #[arg(long)]
        scopes: String,
        /// What the REST API shows as the status of tasks: TODO or DONE, as specified, or the full state [default:
        /// full with the scope courier, dispatch or dispatch:read, specified without]
        #[arg(long, value_name = "KIND", value_parser = ["full", "specified"])]
        task_status: Option<String>,
        #[command(flatten)]
        address: AddressFlags,
    },
    /// List all API clients, or those of a store, oldest first
    List {
        #[arg(long, value_name = "ID", value_parser = id::parser(Collection::Stores))]
        store: Option<String>,
    },
    /// Disable an API client permanently, with its webhooks
    Disable {
        #[arg(value_parser = id::parser(Collection::ApiClients))]
        id: String,
    },
    /// Rotate the secret of an API client and print the new one, which is shown only once
    ///
    /// Each replaced secret stays valid for its own overlap. At most 5 are valid at a time: until
    /// the first of them expires, a rotation requires --overlap 0. Access tokens and streams end
    /// with the secret that they were issued for.
    RotateSecret {
        #[arg(value_parser = id::parser(Collection::ApiClients))]
        id: String,
        /// How long the old secret stays valid: by default a day; `0` if it is compromised, which
        /// invalidates all replaced secrets at once and their access tokens within a minute
        #[arg(long, value_name = "DURATION", value_parser = duration::parse_or_zero)]
        overlap: Option<Duration>,
    },
}

impl CoreCommand<Command> {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect("admin").await?;
        let json = self.access.json;

        let client = match self.command {
            Command::Create {
                store,
                courier,
                name,
                scopes,
                task_status,
                address,
            } => {
                let task_status = task_status.and_then(|kind| {
                    let kind = kind.to_ascii_uppercase();
                    TaskStatus::from_str_name(&format!("TASK_STATUS_{kind}"))
                });
                let message = CreateApiClientRequest {
                    store: store.unwrap_or_default(),
                    courier: courier.unwrap_or_default(),
                    display_name: name,
                    scopes: scopes.split_whitespace().map(str::to_owned).collect(),
                    default_address: address.draft(),
                    idempotency: None,
                    task_status: task_status.unwrap_or_default().into(),
                };
                core.write(message).await
            }
            Command::List { store } => {
                let store = store.unwrap_or_default();
                let request = ListApiClientsRequest { store };
                let listed = core.call(request).await?;
                return output::many(json, listed.api_clients.into_iter().map(view));
            }
            Command::Disable { id } => {
                let message = DisableApiClientRequest {
                    name: id,
                    idempotency: None,
                };
                let disabled = core.write(message).await?;
                let webhooks = disabled.disabled_webhooks;
                let client = view(disabled)
                    .json("disabled_webhooks", webhooks)
                    .text("webhooks", format!("{webhooks} disabled"));
                return output::one(json, client);
            }
            Command::RotateSecret { id, overlap } => {
                let message = RotateApiClientSecretRequest {
                    name: id,
                    overlap_seconds: overlap
                        .map(|overlap| u32::try_from(overlap.as_secs()).unwrap_or(u32::MAX)),
                    idempotency: None,
                };
                core.write(message).await
            }
        };
        output::one(json, view(client?))
    }
}

fn view(client: proto::ApiClient) -> View {
    let task_status = enum_name(client.task_status().as_str_name(), "TASK_STATUS_");
    let address = client.default_address;
    View::default()
        .field("id", id::of(&client.name))
        .field("name", client.display_name)
        .field("store", non_empty(id::of(&client.store)))
        .optional("courier", non_empty(id::of(&client.courier)))
        .field("scopes", client.scopes)
        .field("task_status", task_status)
        .field("address", address.map(|address| address.street_address))
        .json("created_at", instant(client.create_time, "UTC"))
        .field("disabled_at", instant(client.disable_time, "UTC"))
        .field("api_key", client.api_key)
        // Shown only when it is created.
        .optional("api_secret", non_empty(client.api_secret))
}
