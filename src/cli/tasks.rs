//! `delivery tasks`: shows and completes tasks.

use clap::{Args, Subcommand};
use proto::{
    CompleteTaskRequest, GetTaskRequest, iri,
    task::{Kind, Status},
    tasks_client::TasksClient,
};
use serde::Serialize;

use crate::cli::{
    access::Access,
    errors::reply,
    id,
    output::{self, Resource},
};

#[derive(Args, Debug)]
pub(crate) struct Tasks {
    #[command(flatten)]
    access: Access,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Complete a task; has no effect on a completed task
    Complete {
        /// IRI (/api/tasks/<id>) or ID of the task
        #[arg(value_parser = id::task)]
        iri: String,
    },
    /// Show a task
    Show {
        /// IRI (/api/tasks/<id>) or ID of the task
        #[arg(value_parser = id::task)]
        iri: String,
    },
}

impl Tasks {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect("tasks:all").await?;
        let mut tasks = TasksClient::new(core.channel.clone());

        let task = match self.command {
            Command::Complete { iri: name } => {
                let request = core.request(CompleteTaskRequest { name });
                tasks.complete_task(request).await
            }
            Command::Show { iri: name } => {
                let request = core.request(GetTaskRequest { name });
                tasks.get_task(request).await
            }
        };
        let task = reply(task)?;
        output::one(self.access.json, &Task::from(task))
    }
}

#[derive(Serialize)]
struct Task {
    id: String,
    iri: String,
    /// IRI.
    delivery: String,
    r#type: &'static str,
    status: &'static str,
    address: Option<String>,
    after: Option<String>,
    before: Option<String>,
    comments: String,
    completed_at: Option<String>,
    cancelled_at: Option<String>,
}

impl From<proto::Task> for Task {
    fn from(task: proto::Task) -> Self {
        let instant = |timestamp| output::instant(timestamp, &task.time_zone);
        Self {
            id: id::of(&task.name).to_owned(),
            iri: iri::of(&task.name),
            delivery: iri::of(&task.delivery),
            r#type: match task.kind() {
                Kind::Pickup => "PICKUP",
                Kind::Dropoff => "DROPOFF",
                Kind::Unspecified => "UNKNOWN",
            },
            status: match task.status() {
                Status::Todo => "TODO",
                Status::Done => "DONE",
                Status::Unspecified => "UNKNOWN",
            },
            after: instant(task.after.as_ref()),
            before: instant(task.before.as_ref()),
            completed_at: instant(task.complete_time.as_ref()),
            cancelled_at: instant(task.cancel_time.as_ref()),
            address: task.address.map(|address| address.street_address),
            comments: task.comments,
        }
    }
}

impl Resource for Task {
    fn fields(&self) -> Vec<(&'static str, String)> {
        let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
        vec![
            ("task", self.iri.clone()),
            ("delivery", self.delivery.clone()),
            ("type", self.r#type.to_owned()),
            ("status", self.status.to_owned()),
            ("address", or_empty(&self.address)),
            ("after", or_empty(&self.after)),
            ("before", or_empty(&self.before)),
            ("comments", self.comments.clone()),
            ("completed", or_empty(&self.completed_at)),
            ("cancelled", or_empty(&self.cancelled_at)),
        ]
    }
}
