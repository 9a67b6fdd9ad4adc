//! A fake dispatcher: it sends nothing, and reports notifications as delivered.

use std::time::Duration;

use proto::{
    Notification, Outcome, ReceiveRequest, ReceiveResponse, ReportOutcomesRequest,
    notifications_client::NotificationsClient,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming, transport::Channel};

use crate::{
    cluster::Cluster,
    grpc::{self, with_token},
};

/// Far longer than core takes for a response.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A stream from the first core, to which outcomes are reported too.
pub(crate) struct Dispatcher {
    client: NotificationsClient<Channel>,
    token: String,
    requests: mpsc::Sender<ReceiveRequest>,
    responses: Streaming<ReceiveResponse>,
}

impl Dispatcher {
    pub(crate) async fn open(cluster: &Cluster) -> Self {
        let client = &cluster.dispatcher_client;
        let (channel, token) =
            grpc::connect(&cluster.core_urls[0], client, &["notifications"]).await;
        let (requests, outgoing) = mpsc::channel(1);
        let mut client = NotificationsClient::new(channel);
        let request = with_token(&token, ReceiverStream::new(outgoing));
        let responses = client.receive(request).await;
        Self {
            client,
            token,
            requests,
            responses: responses.unwrap().into_inner(),
        }
    }

    /// Grants capacity.
    pub(crate) async fn grant(&self, capacity: u32) {
        let request = ReceiveRequest { capacity };
        let sent = tokio::time::timeout(TIMEOUT, self.requests.send(request)).await;
        sent.expect("core should read requests").unwrap();
    }

    /// Reports notifications as delivered.
    pub(crate) async fn report(&mut self, delivered: Vec<Notification>) -> Result<(), Status> {
        let outcomes = delivered.into_iter().map(|notification| Outcome {
            name: notification.name,
            lease_token: notification.lease_token,
            status: Some(204),
            ..Outcome::default()
        });
        let request = ReportOutcomesRequest {
            outcomes: outcomes.collect(),
        };
        let report = self
            .client
            .report_outcomes(with_token(&self.token, request));
        let reported = tokio::time::timeout(TIMEOUT, report).await;
        reported.expect("core should record outcomes").map(|_| ())
    }

    pub(crate) async fn next(&mut self) -> Result<ReceiveResponse, Status> {
        let response = tokio::time::timeout(TIMEOUT, self.responses.message()).await;
        let response = response.expect("core should send another response")?;
        Ok(response.expect("core should end a stream with a status"))
    }
}
