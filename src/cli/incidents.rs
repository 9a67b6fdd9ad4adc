//! `delivery incidents`: lists what went wrong with tasks, and closes it.

use clap::Subcommand;
use proto::{
    CloseIncidentRequest, ListIncidentsRequest,
    incident::State,
    iri::{self, Collection},
    limits::MAX_PAGE_SIZE,
};

use crate::cli::{
    access::{Core, CoreCommand},
    id,
    output::{self, View},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the open incidents of all stores, newest first
    List {
        /// Also closed ones
        #[arg(long)]
        all: bool,
    },
    /// Close an incident; has no effect on a closed one
    Close {
        /// ID of the incident
        #[arg(value_parser = id::parser(Collection::Incidents))]
        id: String,
        /// What was done
        #[arg(
            long,
            value_name = "TEXT",
            default_value = "",
            hide_default_value = true
        )]
        note: String,
    },
}

impl CoreCommand<Command> {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect("dispatch").await?;

        match self.command {
            Command::List { all } => {
                let incidents = list(&core, !all).await?;
                let views = incidents.into_iter().map(view).collect();
                output::one(self.access.json, View::default().list("incidents", views))
            }
            Command::Close { id, note } => {
                let request = CloseIncidentRequest {
                    name: id,
                    closed_with: note,
                    idempotency: None,
                };
                output::one(self.access.json, view(core.write(request).await?))
            }
        }
    }
}

async fn list(core: &Core, open_only: bool) -> anyhow::Result<Vec<proto::Incident>> {
    let mut request = ListIncidentsRequest {
        open_only,
        page_size: Some(MAX_PAGE_SIZE),
        ..ListIncidentsRequest::default()
    };
    let mut incidents = Vec::new();
    loop {
        let page = core.call(request.clone()).await?;
        incidents.extend(page.incidents);
        if page.next_page_token.is_empty() {
            return Ok(incidents);
        }
        request.page_token = page.next_page_token;
    }
}

fn view(incident: proto::Incident) -> View {
    let instant = |timestamp| output::instant(timestamp, "UTC");
    let state = match incident.state() {
        State::Closed => "closed",
        State::Open | State::Unspecified => "open",
    };
    let actor = incident.actor().as_str_name();
    View::default()
        .field("id", id::of(&incident.name))
        .field("task", iri::of(&incident.task))
        .field("state", state)
        .field("created_at", instant(incident.create_time))
        .field("reason", output::non_empty(incident.failure_reason))
        .field("description", output::non_empty(incident.description))
        .field("closed_at", instant(incident.close_time))
        .field("closed_with", output::non_empty(incident.closed_with))
        .json("occurred_at", instant(incident.occurred_time))
        .json("reported_by", output::enum_name(actor, "ACTOR_"))
        .json("api_client", output::non_empty(incident.api_client))
        .json("store", id::of(&incident.store).to_owned())
}
