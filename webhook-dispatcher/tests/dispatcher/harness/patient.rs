//! A receiver that answers when it is told to.

use std::sync::Arc;

use tokio::sync::{
    Semaphore,
    mpsc::{self, UnboundedReceiver},
};

use super::{OK, receiver, soon};

/// A receiver that tells of each request and answers it when a permit is added.
pub(crate) struct PatientReceiver {
    pub url: String,
    pub arrived: UnboundedReceiver<()>,
    pub permits: Arc<Semaphore>,
}

impl PatientReceiver {
    pub(crate) async fn start() -> Self {
        let permits = Arc::new(Semaphore::new(0));
        let gate = Arc::clone(&permits);
        let (arrived_tx, arrived) = mpsc::unbounded_channel();
        let addr = receiver(move |_, mut connection| {
            let gate = Arc::clone(&gate);
            let arrived = arrived_tx.clone();
            async move {
                while connection.read_request().await.is_some() {
                    // The test may not be interested.
                    let _ = arrived.send(());
                    gate.acquire().await.unwrap().forget();
                    connection.write(OK).await;
                }
            }
        })
        .await;
        Self {
            url: format!("http://{addr}/"),
            arrived,
            permits,
        }
    }

    pub(crate) async fn request_arrived(&mut self) {
        soon(self.arrived.recv()).await.unwrap();
    }
}
