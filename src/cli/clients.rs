//! `delivery clients`: the API clients.

use std::time::Duration;

use clap::{Args, Subcommand};
use process::duration;
use proto::{
    CreateApiClientRequest, DisableApiClientRequest, ListApiClientsRequest,
    RotateApiClientSecretRequest, api_clients_client::ApiClientsClient,
};
use serde::Serialize;

use crate::cli::{
    access::Access,
    address::AddressFlags,
    errors::{call_error, reply},
    id,
    output::{self, Resource},
};

#[derive(Args, Debug)]
pub(crate) struct Clients {
    #[command(flatten)]
    access: Access,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create an API client and print its secret, which is shown only once
    Create {
        /// Store of the client; omit for the platform's own programs
        #[arg(long, value_name = "ID", value_parser = id::store)]
        store: Option<String>,
        /// Display name
        #[arg(long)]
        name: String,
        /// Scopes, separated by spaces: deliveries, tasks; for the platform's own programs, which
        /// have no store: tasks:all, notifications, admin
        #[arg(long)]
        scopes: String,
        #[command(flatten)]
        address: AddressFlags,
    },
    /// List all API clients, or those of a store, oldest first
    List {
        #[arg(long, value_name = "ID", value_parser = id::store)]
        store: Option<String>,
    },
    /// Disable an API client permanently, with its webhooks
    Disable {
        #[arg(value_parser = id::api_client)]
        id: String,
    },
    /// Rotate the secret of an API client and print the new one, which is shown only once
    ///
    /// Each replaced secret stays valid for its own overlap. At most 5 are valid at a time: until
    /// the first of them expires, a rotation requires --overlap 0. Access tokens and streams end
    /// with the secret that they were issued for.
    RotateSecret {
        #[arg(value_parser = id::api_client)]
        id: String,
        /// How long the old secret stays valid: by default a day; `0` if it is compromised, which
        /// invalidates all replaced secrets at once and their access tokens within a minute
        #[arg(long, value_name = "DURATION", value_parser = duration::parse_or_zero)]
        overlap: Option<Duration>,
    },
}

impl Clients {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect("admin").await?;
        let clients = || ApiClientsClient::new(core.channel.clone());
        let json = self.access.json;

        let client = match self.command {
            Command::Create {
                store,
                name,
                scopes,
                address,
            } => {
                let message = CreateApiClientRequest {
                    store: store.unwrap_or_default(),
                    display_name: name,
                    scopes: scopes.split_whitespace().map(str::to_owned).collect(),
                    default_address: address.draft(),
                    idempotency: None,
                };
                core.write(message, call_error, async |request| {
                    clients().create_api_client(request).await
                })
                .await
            }
            Command::List { store } => {
                let request = core.request(ListApiClientsRequest {
                    store: store.unwrap_or_default(),
                });
                let listed = reply(clients().list_api_clients(request).await)?;
                let clients: Vec<_> = listed.api_clients.into_iter().map(Client::from).collect();
                return output::many(json, &clients);
            }
            Command::Disable { id } => {
                let message = DisableApiClientRequest {
                    name: id,
                    idempotency: None,
                };
                let disabled = core
                    .write(message, call_error, async |request| {
                        clients().disable_api_client(request).await
                    })
                    .await?;
                let client = Client {
                    disabled_webhooks: Some(disabled.disabled_webhooks),
                    ..Client::from(disabled)
                };
                return output::one(json, &client);
            }
            Command::RotateSecret { id, overlap } => {
                let message = RotateApiClientSecretRequest {
                    name: id,
                    overlap_seconds: overlap
                        .map(|overlap| u32::try_from(overlap.as_secs()).unwrap_or(u32::MAX)),
                    idempotency: None,
                };
                core.write(message, call_error, async |request| {
                    clients().rotate_api_client_secret(request).await
                })
                .await
            }
        };
        output::one(json, &Client::from(client?))
    }
}

#[derive(Serialize)]
struct Client {
    id: String,
    api_key: String,
    /// Shown only when it is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    api_secret: Option<String>,
    /// ID; null for the platform's own programs.
    store: Option<String>,
    name: String,
    scopes: Vec<String>,
    address: Option<String>,
    created_at: Option<String>,
    disabled_at: Option<String>,
    /// Shown only when the client is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled_webhooks: Option<u32>,
}

impl From<proto::ApiClient> for Client {
    fn from(client: proto::ApiClient) -> Self {
        Self {
            id: id::of(&client.name).to_owned(),
            api_key: client.api_key,
            api_secret: Some(client.api_secret).filter(|secret| !secret.is_empty()),
            store: Some(id::of(&client.store).to_owned()).filter(|store| !store.is_empty()),
            name: client.display_name,
            scopes: client.scopes,
            address: client.default_address.map(|address| address.street_address),
            created_at: output::instant(client.create_time.as_ref(), "UTC"),
            disabled_at: output::instant(client.disable_time.as_ref(), "UTC"),
            disabled_webhooks: None,
        }
    }
}

impl Resource for Client {
    fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("id", self.id.clone()),
            ("name", self.name.clone()),
            ("store", self.store.clone().unwrap_or_default()),
            ("scopes", self.scopes.join(" ")),
            ("address", self.address.clone().unwrap_or_default()),
            ("disabled", self.disabled_at.clone().unwrap_or_default()),
            ("api key", self.api_key.clone()),
        ];
        if let Some(webhooks) = self.disabled_webhooks {
            fields.push(("webhooks", format!("{webhooks} disabled")));
        }
        if let Some(secret) = &self.api_secret {
            fields.push(("api secret", secret.clone()));
        }
        fields
    }
}
