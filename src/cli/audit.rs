//! `delivery audit`: who changed or read what.

use clap::Subcommand;
use jiff::Timestamp;
use proto::{
    ListAuditEventsRequest,
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
    /// List what clients with the scopes admin, dispatch and dispatch:read did, newest first
    ///
    /// Each change has a row from its own transaction, which no log level silences, and each read of personal data one
    /// a minute. Rows are kept as long as --audit-retention of the cores says. The address is that of the caller's
    /// connection: for calls over the REST API, the gateway's.
    List {
        /// Only what this API client did
        #[arg(long, value_name = "ID", value_parser = id::parser(Collection::ApiClients))]
        who: Option<String>,
        /// Only what concerns this: IRI or name of a resource (with a store's, also what it has), a collection such as
        /// zones, or an rpc such as `DisableStore`
        #[arg(long, value_name = "WHAT")]
        what: Option<String>,
        /// Only since this time, such as 2020-04-02T12:00:00+02:00
        #[arg(long, value_name = "TIME")]
        since: Option<Timestamp>,
    },
}

impl CoreCommand<Command> {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect("admin").await?;
        let Command::List { who, what, since } = self.command;
        let mut request = ListAuditEventsRequest {
            api_client: who.unwrap_or_default(),
            since: since.map(output::timestamp),
            page_size: Some(MAX_PAGE_SIZE),
            ..ListAuditEventsRequest::default()
        };
        if let Some(what) = what.as_deref().map(iri::name) {
            what.clone_into(field_of(&mut request, what));
        }
        let events = list(&core, request).await?.into_iter().map(view);
        let list = View::default().list("audit_events", events.collect());
        output::one(self.access.json, list)
    }
}

/// The field of a request that filters by it.
fn field_of<'r>(request: &'r mut ListAuditEventsRequest, what: &str) -> &'r mut String {
    if Collection::Stores.id(what).is_some() {
        &mut request.store
    } else if what.starts_with(char::is_uppercase) {
        &mut request.rpc
    } else {
        &mut request.resource
    }
}

/// The events of all pages.
async fn list(
    core: &Core,
    mut request: ListAuditEventsRequest,
) -> anyhow::Result<Vec<proto::AuditEvent>> {
    let mut events = Vec::new();
    loop {
        let page = core.call(request.clone()).await?;
        events.extend(page.audit_events);
        if page.next_page_token.is_empty() {
            return Ok(events);
        }
        request.page_token = page.next_page_token;
    }
}

fn view(event: proto::AuditEvent) -> View {
    View::default()
        .json("id", id::of(&event.name))
        .named(
            "created_at",
            "at",
            output::instant(event.create_time, "UTC"),
        )
        .named("who", "who", event.api_client_display_name)
        .field("rpc", event.rpc)
        .field("resource", event.resource)
        .field("store", output::non_empty(id::of(&event.store)))
        .named("address", "from", output::non_empty(event.address))
        .named("api_client", "client", id::of(&event.api_client))
}
