//! `delivery couriers`: creates, lists, shows and changes couriers, and shows their lists of a day.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use proto::{
    CreateCourierRequest, GetCourierRequest, ListCourierListsRequest, ListCouriersRequest,
    UpdateCourierRequest,
    iri::{self, Collection},
};

use crate::cli::{
    access::CoreCommand,
    id,
    output::{self, View},
};

#[derive(Debug, Args)]
pub(crate) struct Courier {
    /// ID of the courier
    #[arg(value_parser = id::parser(Collection::Couriers))]
    id: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a courier
    Create {
        /// Name of the courier
        #[arg(long)]
        name: String,
        /// Telephone number
        #[arg(long, default_value = "")]
        telephone: String,
    },
    /// List couriers, oldest first
    List {
        /// Only disabled couriers
        #[arg(long)]
        disabled: bool,
        /// Only couriers that are not disabled
        #[arg(long, conflicts_with = "disabled")]
        enabled: bool,
    },
    /// Show a courier
    Show(Courier),
    /// Change the given settings of a courier
    Set {
        #[command(flatten)]
        courier: Courier,
        #[command(flatten)]
        changes: Changes,
    },
    /// Disable a courier: its lists stay, and it gets no more tasks
    Disable(Courier),
    /// Enable a disabled courier
    Enable(Courier),
    /// Print the tasks of each courier on a day, in order
    Lists {
        /// The day, such as 2026-12-01, in the platform's time zone [default: today]
        #[arg(long, value_name = "DAY")]
        day: Option<String>,
    },
}

#[derive(Args, Debug)]
#[group(required = true, multiple = true)]
pub(crate) struct Changes {
    /// Name of the courier
    #[arg(long)]
    name: Option<String>,
    /// Telephone number; empty for none
    #[arg(long)]
    telephone: Option<String>,
}

impl Command {
    /// The scope that it needs.
    const fn scope(&self) -> &'static str {
        match self {
            Self::List { .. } | Self::Show(_) | Self::Lists { .. } => "dispatch:read",
            _ => "dispatch",
        }
    }
}

impl CoreCommand<Command> {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect(self.command.scope()).await?;
        let json = self.access.json;

        let update = |courier: Courier| UpdateCourierRequest {
            name: courier.id,
            ..UpdateCourierRequest::default()
        };
        let courier = match self.command {
            Command::Create { name, telephone } => {
                let message = CreateCourierRequest {
                    display_name: name,
                    telephone,
                    idempotency: None,
                };
                core.write(message).await?
            }
            Command::List { disabled, enabled } => {
                let request = ListCouriersRequest {
                    disabled: (disabled || enabled).then_some(disabled),
                    ..ListCouriersRequest::default()
                };
                let listed = core.call(request).await?;
                let couriers = listed.couriers.into_iter().map(view).collect();
                return output::one(json, View::default().list("couriers", couriers));
            }
            Command::Show(courier) => core.call(GetCourierRequest { name: courier.id }).await?,
            Command::Set { courier, changes } => {
                let message = UpdateCourierRequest {
                    display_name: changes.name,
                    telephone: changes.telephone,
                    ..update(courier)
                };
                core.write(message).await?
            }
            Command::Disable(courier) => {
                let disabled = Some(true);
                core.write(UpdateCourierRequest {
                    disabled,
                    ..update(courier)
                })
                .await?
            }
            Command::Enable(courier) => {
                let disabled = Some(false);
                core.write(UpdateCourierRequest {
                    disabled,
                    ..update(courier)
                })
                .await?
            }
            Command::Lists { day } => {
                let day = day.unwrap_or_default();
                let lists = core.call(ListCourierListsRequest { day }).await?.lists;
                let couriers = core.call(ListCouriersRequest::default()).await?.couriers;
                let names: BTreeMap<_, _> = couriers
                    .into_iter()
                    .map(|courier| (courier.name, courier.display_name))
                    .collect();
                let rows = lists.into_iter().flat_map(|list| {
                    let courier = names.get(&list.courier).cloned().unwrap_or_default();
                    list.tasks.into_iter().map(move |task| {
                        View::default()
                            .field("courier", courier.clone())
                            .json("courier_id", id::of(&list.courier).to_owned())
                            .field("task", iri::of(&task))
                    })
                });
                return output::one(json, View::default().list("tasks", rows.collect()));
            }
        };
        output::one(json, view(courier))
    }
}

fn view(courier: proto::Courier) -> View {
    View::default()
        .field("id", id::of(&courier.name))
        .field("name", courier.display_name)
        .field("telephone", output::non_empty(courier.telephone))
        .field("disabled", courier.disable_time.is_some())
}
