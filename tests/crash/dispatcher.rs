//! A fake dispatcher: it sends nothing, and reports notifications as delivered.

use std::time::Duration;

use proto::{
    IssueTokenRequest, Notification, Outcome, ReceiveRequest, ReceiveResponse,
    ReportOutcomesRequest, notifications_client::NotificationsClient, tokens_client::TokensClient,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Status, Streaming, transport::Channel};

use crate::cluster::Cluster;

/// Far longer than core takes for a response.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A stream from the first core, to which outcomes are reported too.
pub(crate) struct Dispatcher {
    client: NotificationsClient<Channel>,
    bearer: String,
    requests: mpsc::Sender<ReceiveRequest>,
    responses: Streaming<ReceiveResponse>,
}

impl Dispatcher {
    pub(crate) async fn open(cluster: &Cluster) -> Self {
        let channel = Channel::from_shared(cluster.core_urls[0].clone());
        let channel = channel.unwrap().connect().await.unwrap();
        let client = &cluster.dispatcher_client;
        let issued = TokensClient::new(channel.clone())
            .issue_token(IssueTokenRequest {
                api_key: client.api_key.clone(),
                api_secret: client.api_secret.clone(),
                scopes: vec!["notifications".to_owned()],
            })
            .await
            .unwrap();
        let (requests, outgoing) = mpsc::channel(1);
        let bearer = format!("Bearer {}", issued.into_inner().access_token);
        let mut client = NotificationsClient::new(channel);
        let request = with_token(&bearer, ReceiverStream::new(outgoing));
        let responses = client.receive(request).await;
        Self {
            client,
            bearer,
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
            ..ReportOutcomesRequest::default()
        };
        let report = self
            .client
            .report_outcomes(with_token(&self.bearer, request));
        let reported = tokio::time::timeout(TIMEOUT, report).await;
        reported.expect("core should record outcomes").map(|_| ())
    }

    pub(crate) async fn next(&mut self) -> Result<ReceiveResponse, Status> {
        let response = tokio::time::timeout(TIMEOUT, self.responses.message()).await;
        let response = response.expect("core should send another response")?;
        Ok(response.expect("core should end a stream with a status"))
    }
}

fn with_token<T>(bearer: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let metadata = request.metadata_mut();
    metadata.insert("authorization", bearer.parse().unwrap());
    request
}
