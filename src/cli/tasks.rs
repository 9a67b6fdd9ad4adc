//! `delivery tasks`: shows and changes tasks.

mod watch;

use clap::Subcommand;
use jiff::Timestamp;
use proto::{
    AssignTasksRequest, CompleteTaskRequest, FailTaskRequest, GetTaskRequest, ListTasksRequest,
    ReopenTaskRequest, RescheduleTaskRequest, StartTaskRequest,
    assign_tasks_request::Move,
    iri::{self, Collection},
    limits::MAX_PAGE_SIZE,
    list_tasks_request::Order,
    task::State,
};

use crate::cli::{
    access::{Core, CoreCommand},
    id,
    output::{self, View},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Task {
    /// IRI (/api/tasks/<id>) or ID of the task
    #[arg(value_parser = id::parser(Collection::Tasks))]
    iri: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Tasks {
    /// IRIs or IDs of tasks
    #[arg(value_name = "TASK", required = true, value_parser = id::parser(Collection::Tasks))]
    tasks: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a task: a courier has begun it
    Start(Task),
    /// Complete a task; has no effect on a completed task
    Complete(Task),
    /// Report that a task failed
    Fail {
        #[command(flatten)]
        task: Task,
        #[arg(
            long,
            value_name = "CODE",
            help = "Why, such as NOT_AT_HOME, REFUSED, WRONG_ADDR, DAMAGED or OTHER"
        )]
        reason: String,
    },
    /// Have a completed task done again, while its delivery is not completed
    Reopen(Task),
    /// Give a task that is not done a new window
    Reschedule {
        #[command(flatten)]
        task: Task,
        /// The earliest time, such as 2026-12-01T10:00:00+01:00
        #[arg(long, value_name = "TIME", required_unless_present = "time_slot")]
        after: Option<Timestamp>,
        /// The latest time
        #[arg(long, value_name = "TIME", required_unless_present = "time_slot")]
        before: Option<Timestamp>,
        /// A time slot instead, such as "2026-12-01 10:00-12:00"; a dropoff takes a place in it
        #[arg(long, value_name = "SLOT", conflicts_with_all = ["after", "before"])]
        time_slot: Option<String>,
        /// Move the other task of the delivery by as much; required for a cancelled delivery
        #[arg(long)]
        both: bool,
    },
    /// Put tasks at the end of a courier's list, each with the other task of its delivery
    Assign {
        /// ID of the courier
        #[arg(long, value_name = "ID", value_parser = id::parser(Collection::Couriers))]
        courier: String,
        /// The day of the list, such as 2026-12-01 [default: the first day of each task's window that is not past]
        #[arg(long, value_name = "DAY")]
        day: Option<String>,
        #[command(flatten)]
        tasks: Tasks,
    },
    /// Take tasks out of the lists of couriers, each with the other task of its delivery
    Unassign(Tasks),
    /// Show a task
    Show(Task),
    /// List the tasks of a day, by the end of the window: those in couriers' lists of the day, and those in none
    /// whose windows touch it
    List(Filter),
    /// List the tasks of a day, and then print each that changes, as it is now, until interrupted
    ///
    /// A task that is no longer in the list is printed as left. With --json, each line is a document: the position,
    /// the tasks that changed, and those that left. A lost core is called again for a minute.
    Watch(Filter),
}

/// Which tasks are listed.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Filter {
    /// The day, such as 2026-12-01, in the platform's time zone [default: today]
    #[arg(long, value_name = "DAY")]
    day: Option<String>,
    /// Only tasks of this store
    #[arg(long, value_name = "ID", value_parser = id::parser(Collection::Stores))]
    store: Option<String>,
    /// Only tasks in this state; may be repeated
    #[arg(long, value_name = "STATE", ignore_case = true)]
    #[arg(value_parser = ["TODO", "DOING", "DONE", "FAILED", "CANCELLED"])]
    state: Vec<String>,
    /// Only tasks in this courier's list of the day
    #[arg(long, value_name = "ID", value_parser = id::parser(Collection::Couriers))]
    courier: Option<String>,
    /// Only tasks without a courier
    #[arg(long, conflicts_with = "courier")]
    unassigned: bool,
    /// Also tasks of days before that are neither done nor cancelled
    #[arg(long)]
    overdue: bool,
    /// Only tasks of which an incident is open
    #[arg(long)]
    incidents: bool,
    /// By courier and place in the list, and then those in no list
    #[arg(long)]
    by_list: bool,
}

impl Filter {
    fn request(self) -> ListTasksRequest {
        let state =
            |name: &String| State::from_str_name(&format!("STATE_{}", name.to_ascii_uppercase()));
        ListTasksRequest {
            day: self.day.unwrap_or_default(),
            include_overdue: self.overdue,
            states: self
                .state
                .iter()
                .filter_map(state)
                .map(Into::into)
                .collect(),
            page_size: Some(MAX_PAGE_SIZE),
            page_token: String::new(),
            courier: self.courier.unwrap_or_default(),
            unassigned: self.unassigned,
            store: self.store.unwrap_or_default(),
            has_incidents: self.incidents,
            order: if self.by_list {
                Order::List.into()
            } else {
                Order::Unspecified.into()
            },
        }
    }
}

impl Command {
    /// The scope that it needs.
    const fn scope(&self) -> &'static str {
        match self {
            Self::Show(_) | Self::List(_) | Self::Watch(_) => "dispatch:read",
            _ => "dispatch",
        }
    }
}

impl CoreCommand<Command> {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let core = self.access.connect(self.command.scope()).await?;

        let task = match self.command {
            Command::Start(Task { iri: name }) => {
                let request = StartTaskRequest {
                    name,
                    ..StartTaskRequest::default()
                };
                core.write(request).await?
            }
            Command::Complete(Task { iri: name }) => {
                let request = CompleteTaskRequest {
                    name,
                    ..CompleteTaskRequest::default()
                };
                core.write(request).await?
            }
            Command::Fail { task, reason } => {
                let request = FailTaskRequest {
                    name: task.iri,
                    reason,
                    ..FailTaskRequest::default()
                };
                core.write(request).await?
            }
            Command::Reopen(Task { iri: name }) => {
                let request = ReopenTaskRequest {
                    name,
                    ..ReopenTaskRequest::default()
                };
                core.write(request).await?
            }
            Command::Reschedule {
                task,
                after,
                before,
                time_slot,
                both,
            } => {
                let request = RescheduleTaskRequest {
                    name: task.iri,
                    after: after.map(output::timestamp),
                    before: before.map(output::timestamp),
                    both,
                    time_slot,
                    ..RescheduleTaskRequest::default()
                };
                core.write(request).await?
            }
            Command::Show(Task { iri: name }) => core.call(GetTaskRequest { name }).await?,
            Command::Assign {
                courier,
                day,
                tasks,
            } => return assign(&core, self.access.json, tasks, courier, day).await,
            Command::Unassign(tasks) => {
                return assign(&core, self.access.json, tasks, String::new(), None).await;
            }
            Command::Watch(filter) => {
                return watch::watch(&self.access, core, filter.request()).await;
            }
            Command::List(filter) => {
                let tasks = list(&core, filter.request()).await?.tasks;
                let views = tasks.into_iter().map(listed).collect();
                return output::one(self.access.json, View::default().list("tasks", views));
            }
        };
        output::one(self.access.json, view(task))
    }
}

/// Moves tasks, and prints which were moved.
async fn assign(
    core: &Core,
    json: bool,
    tasks: Tasks,
    courier: String,
    day: Option<String>,
) -> anyhow::Result<()> {
    let moves = tasks.tasks.iter().map(|name| Move {
        task: name.clone(),
        expected_courier: None,
    });
    let request = AssignTasksRequest {
        moves: moves.collect(),
        courier,
        day: day.unwrap_or_default(),
        ..AssignTasksRequest::default()
    };
    let conflicts = core.write(request).await?.conflicts;
    let done = tasks.tasks.iter().filter(|name| !conflicts.contains(name));
    let done = done.map(|name| View::default().named("iri", "task", iri::of(name)));
    output::one(json, View::default().list("tasks", done.collect()))?;
    anyhow::ensure!(
        conflicts.is_empty(),
        "not moved, because they are DONE, FAILED or CANCELLED, or were moved meanwhile: {}",
        conflicts.join(", ")
    );
    Ok(())
}

/// The tasks of all pages of a list.
struct Listed {
    tasks: Vec<proto::Task>,
    /// From which changes of them are watched.
    position: i64,
    day: String,
}

async fn list(core: &Core, mut request: ListTasksRequest) -> anyhow::Result<Listed> {
    let (mut tasks, mut position) = (Vec::new(), 0);
    loop {
        let page = core.call(request.clone()).await?;
        tasks.extend(page.tasks);
        // Later pages have none, and those of today are of the first one's day.
        position = page.position.max(position);
        request.day = page.day;
        if page.next_page_token.is_empty() {
            return Ok(Listed {
                tasks,
                position,
                day: request.day,
            });
        }
        request.page_token = page.next_page_token;
    }
}

/// A row of a list.
fn listed(task: proto::Task) -> View {
    let instant = |timestamp| output::instant(timestamp, &task.time_zone);
    let kind = task.kind().as_str_name().trim_start_matches("KIND_");
    let state = task.state().as_str_name().trim_start_matches("STATE_");
    let other_state = task.other_state().as_str_name();
    View::default()
        .json("id", id::of(&task.name))
        .named("iri", "task", iri::of(&task.name))
        .field("type", kind)
        .field("state", state)
        .field("after", instant(task.after))
        .field("before", instant(task.before))
        .field("store", task.store_display_name)
        .field(
            "courier",
            output::non_empty(id::of(&task.courier).to_owned()),
        )
        .field(
            "address",
            task.address.map(|address| address.street_address),
        )
        .json("delivery", iri::of(&task.delivery))
        .json("external_reference", task.external_reference)
        .json("failure_reason", output::non_empty(task.failure_reason))
        .json("blocked", task.blocked)
        .json("other_task", iri::of(&task.other_task))
        .json("other_state", other_state.trim_start_matches("STATE_"))
}

fn view(task: proto::Task) -> View {
    let instant = |timestamp| output::instant(timestamp, &task.time_zone);
    let kind = task.kind().as_str_name().trim_start_matches("KIND_");
    let status = task.status().as_str_name().trim_start_matches("STATUS_");
    let state = task.state().as_str_name().trim_start_matches("STATE_");
    let reason = (!task.failure_reason.is_empty()).then_some(task.failure_reason.as_str());
    View::default()
        .json("id", id::of(&task.name))
        .named("iri", "task", iri::of(&task.name))
        .field("delivery", iri::of(&task.delivery))
        .field("type", kind)
        .field("status", status)
        .field("state", state)
        .field("state_time", instant(task.state_time))
        .field("failure_reason", reason)
        .field(
            "courier",
            output::non_empty(id::of(&task.courier).to_owned()),
        )
        .field("list_day", output::non_empty(task.list_day))
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
