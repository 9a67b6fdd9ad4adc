//! Completes a task over gRPC. Needs the crates proto of the repository, tokio (full) and tonic, and CORE, COURIER
//! and TASK in the environment.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program of its own"
)]

use std::{env, error::Error, time::Duration};

use proto::{CompleteTaskRequest, tasks_client::TasksClient};
use tonic::{Request, transport::Endpoint};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let core = format!("http://{}", env::var("CORE")?);
    let channel = Endpoint::from_shared(core)?.connect().await?;
    let name = env::var("TASK")?;
    let mut request = Request::new(CompleteTaskRequest {
        name,
        ..CompleteTaskRequest::default()
    });
    request.set_timeout(Duration::from_secs(10));
    let token = format!("Bearer {}", env::var("COURIER")?);
    request
        .metadata_mut()
        .insert("authorization", token.parse()?);
    let task = TasksClient::new(channel).complete_task(request).await?;
    println!("{}", task.into_inner().state().as_str_name());
    Ok(())
}
