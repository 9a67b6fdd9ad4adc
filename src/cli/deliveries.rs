//! `delivery deliveries`: shows and cancels the deliveries of all stores, and revokes the links of tracking pages.

use anyhow::{bail, ensure};
use clap::Subcommand;
use proto::{
    CancelDeliveryRequest, GetDeliveryRequest, ListDeliveriesRequest, RevokeTrackingRequest,
    SearchDeliveriesRequest,
    delivery::State,
    iri::{self, Collection},
    limits::MAX_PAGE_SIZE,
    task::Status,
};

use crate::cli::{
    access::{Core, CoreCommand},
    id,
    output::{self, View},
};

/// As in searches.
const MIN_PREFIX_DIGITS: usize = 8;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the deliveries of a day, by the end of the dropoff's window
    List {
        #[command(flatten)]
        filter: Filter,
        /// Print CSV: a header, and a line for each delivery
        #[arg(long)]
        csv: bool,
    },
    /// Show a delivery with its tasks
    Show {
        /// IRI (/api/deliveries/<id>), ID, its first 8 characters or more, or external reference of the delivery
        #[arg(value_name = "DELIVERY")]
        delivery: String,
    },
    /// Cancel deliveries of which no task is done; has no effect on a cancelled delivery
    Cancel {
        /// IRIs, IDs, their first 8 characters or more, or external references of deliveries
        #[arg(value_name = "DELIVERY", required = true)]
        deliveries: Vec<String>,
    },
    /// Revoke the link of a delivery's tracking page for good; has no effect on a revoked one
    RevokeLink {
        /// IRI or ID of the delivery
        #[arg(value_name = "DELIVERY", value_parser = id::parser(Collection::Deliveries))]
        delivery: String,
    },
}

impl Command {
    /// The scope that it needs.
    const fn scope(&self) -> &'static str {
        match self {
            Self::List { .. } | Self::Show { .. } => "dispatch:read",
            Self::Cancel { .. } | Self::RevokeLink { .. } => "dispatch",
        }
    }
}

/// Which deliveries are listed.
#[derive(Debug, clap::Args)]
pub(crate) struct Filter {
    /// Only deliveries of this store
    #[arg(long, value_name = "ID", value_parser = id::parser(Collection::Stores))]
    store: Option<String>,
    /// The day on which the dropoff's window ends, such as 2026-12-01, in the platform's time zone [default: today, with
    /// --reference any]
    #[arg(long, value_name = "DAY")]
    day: Option<String>,
    /// Only deliveries that are neither completed nor cancelled
    #[arg(long)]
    open: bool,
    /// Only open deliveries whose dropoff's window has ended
    #[arg(long)]
    late: bool,
    /// Only deliveries in this state
    #[arg(long, value_name = "STATE", ignore_case = true)]
    #[arg(value_parser = [
        "CREATED", "ASSIGNED", "STARTED", "PICKED", "IN_TRANSIT", "DROPPED", "FAILED", "COMPLETED", "CANCELLED",
    ])]
    state: Option<String>,
    /// Only deliveries with this external reference
    #[arg(long, value_name = "REFERENCE")]
    reference: Option<String>,
}

impl Filter {
    fn request(self) -> ListDeliveriesRequest {
        let is_open = self.open || self.late;
        let state =
            |name: String| State::from_str_name(&format!("STATE_{}", name.to_ascii_uppercase()));
        let day = match (self.day, &self.reference) {
            (Some(day), _) => day,
            (None, Some(_)) => String::new(),
            (None, None) => "today".to_owned(),
        };
        ListDeliveriesRequest {
            page_size: Some(MAX_PAGE_SIZE),
            external_reference: self.reference,
            dropoff_until: self.late.then(|| "now".to_owned()),
            status: is_open.then(|| Status::Todo.into()),
            cancelled: is_open.then_some(false),
            state: self.state.and_then(state).map(Into::into),
            store: self.store.unwrap_or_default(),
            day,
            ..ListDeliveriesRequest::default()
        }
    }
}

impl CoreCommand<Command> {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect(self.command.scope()).await?;
        let json = self.access.json;

        match self.command {
            Command::List { filter, csv } => {
                ensure!(!(csv && json), "choose either --csv or --json");
                let mut deliveries = list(&core, filter.request()).await?;
                deliveries.sort_by_key(ends_at);
                let views: Vec<_> = deliveries.into_iter().map(row).collect();
                if csv {
                    return output::csv(&row(proto::Delivery::default()), &views);
                }
                output::one(json, View::default().list("deliveries", views))
            }
            Command::Show { delivery } => output::one(json, view(find(&core, &delivery).await?)),
            Command::Cancel { deliveries } => cancel(&core, json, &deliveries).await,
            Command::RevokeLink { delivery: name } => {
                let revoked = core.call(RevokeTrackingRequest { name }).await?;
                output::one(json, view(revoked))
            }
        }
    }
}

/// Cancels deliveries, and prints those that are cancelled.
async fn cancel(core: &Core, json: bool, deliveries: &[String]) -> anyhow::Result<()> {
    let mut names = Vec::new();
    for delivery in deliveries {
        names.push(find(core, delivery).await?.name);
    }
    let (mut cancelled, mut refused) = (Vec::new(), Vec::new());
    for name in names {
        let request = CancelDeliveryRequest {
            name: name.clone(),
            ..CancelDeliveryRequest::default()
        };
        match core.write(request).await {
            Ok(delivery) => cancelled.push(row(delivery)),
            Err(error) => refused.push(format!("{}: {error}", iri::of(&name))),
        }
    }
    output::one(json, View::default().list("deliveries", cancelled))?;
    ensure!(refused.is_empty(), "{}", refused.join("\n"));
    Ok(())
}

/// The deliveries of all pages of a list.
async fn list(
    core: &Core,
    mut request: ListDeliveriesRequest,
) -> anyhow::Result<Vec<proto::Delivery>> {
    let mut deliveries = Vec::new();
    loop {
        let page = core.call(request.clone()).await?;
        deliveries.extend(page.deliveries);
        if page.next_page_token.is_empty() {
            return Ok(deliveries);
        }
        request.page_token = page.next_page_token;
    }
}

/// A delivery by its id, or else by its reference, which several stores may use, or the beginning of its id.
pub(crate) async fn find(core: &Core, text: &str) -> anyhow::Result<proto::Delivery> {
    if let Ok(name) = id::parser(Collection::Deliveries)(text) {
        return core.call(GetDeliveryRequest { name }).await;
    }
    let request = ListDeliveriesRequest {
        external_reference: Some(text.to_owned()),
        ..ListDeliveriesRequest::default()
    };
    let mut found = list(core, request).await?;
    let mut matched = format!("the external reference {text:?}");
    if is_prefix(text) {
        // Searched as an id only, not in addresses.
        let text = Collection::Deliveries.name(text);
        let request = SearchDeliveriesRequest { text };
        found.extend(core.call(request).await?.deliveries);
        matched += " or an ID that begins with it";
    }
    let Some(delivery) = found.pop() else {
        bail!("no delivery has the external reference {text:?}, which is no ID either");
    };
    if found.iter().any(|other| other.name != delivery.name) {
        found.push(delivery);
        let line = |delivery: &proto::Delivery| {
            let store = &delivery.store_display_name;
            format!("{} ({store})", iri::of(&delivery.name))
        };
        let lines: Vec<_> = found.iter().map(line).collect();
        bail!(
            "several deliveries have {matched}, show one by its IRI:\n{}",
            lines.join("\n")
        );
    }
    Ok(delivery)
}

/// Whether a text may be the beginning of an id that is long enough.
fn is_prefix(text: &str) -> bool {
    let digits = text.chars().filter(char::is_ascii_hexdigit).count();
    let hyphens = text.chars().filter(|character| *character == '-').count();
    digits >= MIN_PREFIX_DIGITS && digits + hyphens == text.chars().count()
}

fn ends_at(delivery: &proto::Delivery) -> Option<(i64, i32)> {
    let before = delivery.dropoff.as_ref()?.before.as_ref()?;
    Some((before.seconds, before.nanos))
}

/// A row of a list.
fn row(delivery: proto::Delivery) -> View {
    let state = state(&delivery);
    let dropoff = delivery.dropoff.unwrap_or_default();
    View::default()
        .json("id", id::of(&delivery.name))
        .named("iri", "delivery", iri::of(&delivery.name))
        .field("state", state)
        .field(
            "before",
            output::instant(dropoff.before, &delivery.time_zone),
        )
        .field("store", delivery.store_display_name)
        .named(
            "external_reference",
            "reference",
            delivery.external_reference,
        )
        .field("courier", output::non_empty(id::of(&dropoff.courier)))
        .field(
            "address",
            dropoff.address.map(|address| address.street_address),
        )
        .json("store_id", id::of(&delivery.store))
}

fn view(delivery: proto::Delivery) -> View {
    let state = state(&delivery);
    let instant = |timestamp| output::instant(timestamp, &delivery.time_zone);
    let tasks = [delivery.pickup, delivery.dropoff].into_iter().flatten();
    View::default()
        .list("tasks", tasks.map(task).collect())
        .json("id", id::of(&delivery.name))
        .named("iri", "delivery", iri::of(&delivery.name))
        .field("state", state)
        .field("store", delivery.store_display_name)
        .field("store_id", id::of(&delivery.store))
        .named(
            "external_reference",
            "reference",
            delivery.external_reference,
        )
        .field("created_at", instant(delivery.create_time))
        .field("cancelled_at", instant(delivery.cancel_time))
        .field("tracking_url", output::non_empty(delivery.tracking_url))
}

fn task(task: proto::Task) -> View {
    let instant = |timestamp| output::instant(timestamp, &task.time_zone);
    let kind = task.kind().as_str_name().trim_start_matches("KIND_");
    let state = task.state().as_str_name().trim_start_matches("STATE_");
    let address = task.address.unwrap_or_default();
    View::default()
        .json("id", id::of(&task.name))
        .named("iri", "task", iri::of(&task.name))
        .field("type", kind)
        .field("state", state)
        .field("after", instant(task.after))
        .field("before", instant(task.before))
        .field("courier", output::non_empty(id::of(&task.courier)))
        .named("contact_name", "contact", address.contact_name)
        .field("telephone", address.telephone)
        .field("address", address.street_address)
        .json("failure_reason", output::non_empty(task.failure_reason))
        .json("comments", task.comments)
}

fn state(delivery: &proto::Delivery) -> &'static str {
    let name = delivery.state().as_str_name();
    name.trim_start_matches("STATE_")
}
