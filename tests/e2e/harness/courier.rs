//! A courier's app: completes tasks over gRPC.

use proto::{CompleteTaskRequest, Task, iri, tasks_client::TasksClient};
use tonic::{Request, Status, transport::Channel};

use super::{Platform, operator};

pub(crate) struct Courier {
    tasks: TasksClient<Channel>,
    token: String,
}

impl Courier {
    pub(crate) async fn authorized(platform: &Platform) -> Self {
        let (channel, token) = operator::connect(platform, &["tasks:all"]).await;
        Self {
            tasks: TasksClient::new(channel),
            token,
        }
    }

    /// Completes the task with an IRI (`/api/tasks/<id>`) and gives it.
    pub(crate) async fn complete(&self, iri: &str) -> Task {
        self.try_to_complete(iri).await.unwrap()
    }

    /// Completes a task, or tells why it is refused.
    pub(crate) async fn try_to_complete(&self, iri: &str) -> Result<Task, Status> {
        let request = CompleteTaskRequest {
            name: iri::name(iri).to_owned(),
        };
        let mut tasks = self.tasks.clone();
        let task = tasks
            .complete_task(operator::bearing(&self.token, Request::new(request)))
            .await?;
        Ok(task.into_inner())
    }
}
