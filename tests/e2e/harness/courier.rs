//! A courier's app: completes tasks over gRPC.

use delivery::Credentials;
use proto::{CompleteTaskRequest, GetTaskRequest, Task, iri, tasks_client::TasksClient};
use tonic::{Status, transport::Channel};

use super::grpc;

#[derive(Clone)]
pub(crate) struct Courier {
    tasks: TasksClient<Channel>,
    token: String,
}

impl Courier {
    pub(crate) async fn authorized(core_url: &str, credentials: &Credentials) -> Self {
        let (channel, token) = grpc::connect(core_url, credentials, &["tasks:all"]).await;
        Self {
            tasks: TasksClient::new(channel),
            token,
        }
    }

    /// Completes the task with this IRI (`/api/tasks/<id>`) and returns it.
    pub(crate) async fn complete(&self, iri: &str) -> Task {
        self.try_complete(iri).await.unwrap()
    }

    /// Completes the task with this IRI, or returns the error.
    pub(crate) async fn try_complete(&self, iri: &str) -> Result<Task, Status> {
        let request = CompleteTaskRequest {
            name: iri::name(iri).to_owned(),
            ..CompleteTaskRequest::default()
        };
        let mut tasks = self.tasks.clone();
        let task = tasks
            .complete_task(grpc::with_token(&self.token, request))
            .await?;
        Ok(task.into_inner())
    }

    /// The task with this IRI.
    pub(crate) async fn read(&self, iri: &str) -> Task {
        let request = GetTaskRequest {
            name: iri::name(iri).to_owned(),
        };
        let mut tasks = self.tasks.clone();
        let task = tasks.get_task(grpc::with_token(&self.token, request)).await;
        task.unwrap().into_inner()
    }
}
