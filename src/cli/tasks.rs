//! `delivery tasks`: shows and completes tasks.

use clap::Subcommand;
use proto::{
    CompleteTaskRequest, GetTaskRequest,
    iri::{self, Collection},
};

use crate::cli::{
    access::CoreCommand,
    id,
    output::{self, View},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Complete a task; has no effect on a completed task
    Complete {
        /// IRI (/api/tasks/<id>) or ID of the task
        #[arg(value_parser = id::parser(Collection::Tasks))]
        iri: String,
    },
    /// Show a task
    Show {
        /// IRI (/api/tasks/<id>) or ID of the task
        #[arg(value_parser = id::parser(Collection::Tasks))]
        iri: String,
    },
}

impl CoreCommand<Command> {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect("tasks:all").await?;

        let task = match self.command {
            Command::Complete { iri: name } => core.call(CompleteTaskRequest { name }).await?,
            Command::Show { iri: name } => core.call(GetTaskRequest { name }).await?,
        };
        output::one(self.access.json, view(task))
    }
}

fn view(task: proto::Task) -> View {
    let instant = |timestamp| output::instant(timestamp, &task.time_zone);
    let kind = task.kind().as_str_name().trim_start_matches("KIND_");
    let status = task.status().as_str_name().trim_start_matches("STATUS_");
    View::default()
        .json("id", id::of(&task.name))
        .named("iri", "task", iri::of(&task.name))
        .field("delivery", iri::of(&task.delivery))
        .field("type", kind)
        .field("status", status)
        .field(
            "address",
            task.address.map(|address| address.street_address),
        )
        .field("after", instant(task.after))
        .field("before", instant(task.before))
        .field("comments", task.comments)
        .field("completed_at", instant(task.complete_time))
        .field("cancelled_at", instant(task.cancel_time))
}
