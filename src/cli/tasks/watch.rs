//! `delivery tasks watch`: a list, and then each change in it.

use std::{collections::BTreeSet, time::Duration};

use anyhow::anyhow;
use core_client::is_from_core;
use proto::{
    ListTasksRequest, WatchTasksRequest, WatchTasksResponse, iri, tasks_client::TasksClient,
};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::{Listed, list, listed};
use crate::cli::{
    access::{Access, Core},
    errors::call_error,
    output::{self, View},
};

/// How often a lost stream is opened again, until a message arrives.
const ATTEMPTS: u32 = 60;
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// What was printed and received.
struct Watch {
    json: bool,
    request: WatchTasksRequest,
    /// The tasks in the list.
    listed: BTreeSet<String>,
    /// Since the last message.
    attempts: u32,
}

/// Prints the tasks of a list, and then those that change, until it is interrupted.
pub(super) async fn watch(
    access: &Access,
    mut core: Core,
    mut request: ListTasksRequest,
) -> anyhow::Result<()> {
    let Listed {
        tasks,
        position,
        day,
    } = list(&core, request.clone()).await?;
    // That of the list, also after midnight.
    (request.day, request.page_size) = (day, None);
    let mut watch = Watch {
        json: access.json,
        request: WatchTasksRequest {
            after_position: Some(position),
            list: Some(request),
        },
        listed: tasks.iter().map(|task| task.name.clone()).collect(),
        attempts: 0,
    };
    let tasks = tasks.into_iter().map(listed).collect();
    if watch.json {
        print_document(position, tasks, &[])?;
    } else {
        output::one(false, View::default().list("tasks", tasks))?;
    }
    loop {
        let lost = watch.follow(&core).await?;
        watch.attempts += 1;
        anyhow::ensure!(watch.attempts < ATTEMPTS, lost);
        eprintln!("the stream of changes is opened again: {lost:#}");
        tokio::time::sleep(RETRY_DELAY).await;
        match access.connect("dispatch:read").await {
            Ok(connected) => core = connected,
            Err(error) if watch.attempts + 1 == ATTEMPTS => return Err(error),
            // The old one fails again.
            Err(_) => {}
        }
    }
}

impl Watch {
    /// Prints changes until the stream is lost. Returns why; fails if it is not to be opened again.
    async fn follow(&mut self, core: &Core) -> anyhow::Result<anyhow::Error> {
        // Its limit of time is for whole calls.
        let mut tasks = TasksClient::new(core.upload_channel.clone());
        let mut changes = match tasks.watch_tasks(self.request.clone()).await {
            Ok(opened) => opened.into_inner(),
            Err(status) => return lost(&status),
        };
        loop {
            match changes.message().await {
                Ok(Some(change)) => {
                    self.attempts = 0;
                    self.request.after_position = Some(change.position);
                    self.print(change)?;
                }
                Ok(None) => return Ok(anyhow!("core has closed it")),
                Err(status) => return lost(&status),
            }
        }
    }

    fn print(&mut self, change: WatchTasksResponse) -> anyhow::Result<()> {
        let mut left = change.left;
        // The others were not in the list.
        left.retain(|task| self.listed.remove(task));
        self.listed
            .extend(change.tasks.iter().map(|task| task.name.clone()));
        let tasks = change.tasks.into_iter().map(listed);
        if self.json {
            // The list of couriers changed only, or nothing did.
            if tasks.len() + left.len() == 0 {
                return Ok(());
            }
            return print_document(change.position, tasks.collect(), &left);
        }
        let left = left.iter().map(|task| {
            let view = View::default().text("task", iri::of(task));
            view.text("state", "left")
        });
        tasks
            .chain(left)
            .try_for_each(|view| output::line(false, view))
    }
}

/// Prints a list, or a change of it, as JSON.
fn print_document(position: i64, tasks: Vec<View>, left: &[String]) -> anyhow::Result<()> {
    let left: Vec<_> = left.iter().map(|task| iri::of(task)).collect();
    let document = View::default().json("position", position);
    output::line(true, document.json("tasks", tasks).json("left", left))
}

/// Why a stream was lost that is to be opened again; else the error.
fn lost(status: &Status) -> anyhow::Result<anyhow::Error> {
    let has_expired = || {
        let info = status.get_details_error_info();
        info.is_some_and(|info| info.reason == "TOKEN_EXPIRED")
    };
    let is_lost = !is_from_core(status) || status.code() == Code::Unavailable || has_expired();
    let error = call_error(status);
    if is_lost { Ok(error) } else { Err(error) }
}
