//! `delivery tasks watch`: a list, and then each change in it.

use std::time::Duration;

use proto::{
    ListTasksRequest, WatchTasksRequest, WatchTasksResponse, iri, tasks_client::TasksClient,
};

use super::{list, listed};
use crate::cli::{
    access::{Access, Core},
    errors::call_error,
    output::{self, View},
};

/// How long the cores may be out of reach before the command fails.
const ATTEMPTS: u32 = 60;
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Prints the tasks of a list, and then those that change, until it is interrupted.
pub(super) async fn watch(
    access: &Access,
    mut core: Core,
    mut request: ListTasksRequest,
) -> anyhow::Result<()> {
    let json = access.json;
    let (tasks, mut position) = list(&core, request.clone()).await?;
    let tasks = tasks.into_iter().map(listed).collect();
    if json {
        let list = View::default().json("position", position);
        let list = list.json("tasks", tasks).json("left", Vec::<String>::new());
        output::line(true, list)?;
    } else {
        output::one(false, View::default().list("tasks", tasks))?;
    }
    request.page_size = None;
    loop {
        let ended = follow(&core, json, &request, &mut position).await?;
        tracing::warn!("the watch ended, it is opened again: {ended:#}");
        core = reconnect(access).await?;
    }
}

/// Prints changes until the stream ends. Returns why; fails if its position is not valid any more.
async fn follow(
    core: &Core,
    json: bool,
    list: &ListTasksRequest,
    position: &mut i64,
) -> anyhow::Result<anyhow::Error> {
    let request = WatchTasksRequest {
        after_position: Some(*position),
        list: Some(list.clone()),
    };
    // Its limit of time is for whole calls.
    let mut tasks = TasksClient::new(core.upload_channel.clone());
    let mut changes = match tasks.watch_tasks(request).await {
        Ok(opened) => opened.into_inner(),
        Err(status) if is_final(&status) => return Err(call_error(&status)),
        Err(status) => return Ok(call_error(&status)),
    };
    loop {
        match changes.message().await {
            Ok(Some(change)) => {
                *position = change.position;
                print(json, change)?;
            }
            Ok(None) => return Ok(anyhow::anyhow!("core has closed it")),
            Err(status) if is_final(&status) => return Err(call_error(&status)),
            Err(status) => return Ok(call_error(&status)),
        }
    }
}

/// Whether another attempt fails, too.
fn is_final(status: &tonic::Status) -> bool {
    use tonic::Code::{InvalidArgument, OutOfRange, PermissionDenied};
    matches!(
        status.code(),
        InvalidArgument | OutOfRange | PermissionDenied
    )
}

async fn reconnect(access: &Access) -> anyhow::Result<Core> {
    let mut attempts = 1;
    loop {
        tokio::time::sleep(RETRY_DELAY).await;
        match access.connect("dispatch").await {
            Err(_) if attempts < ATTEMPTS => attempts += 1,
            connected => return connected,
        }
    }
}

fn print(json: bool, change: WatchTasksResponse) -> anyhow::Result<()> {
    let left = change.left.iter().map(|task| iri::of(task));
    let tasks = change.tasks.into_iter().map(listed);
    if !json {
        let left = left.map(|task| View::default().text("task", task).text("state", "left"));
        return tasks
            .chain(left)
            .try_for_each(|view| output::line(false, view));
    }
    let (tasks, left): (Vec<_>, Vec<_>) = (tasks.collect(), left.collect());
    if tasks.is_empty() && left.is_empty() {
        return Ok(());
    }
    let change = View::default().json("position", change.position);
    output::line(true, change.json("tasks", tasks).json("left", left))
}
