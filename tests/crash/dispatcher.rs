//! A fake dispatcher: it sends nothing and reports the outcomes that a test sets.

use std::time::Duration;

use proto::{
    IssueTokenRequest, Notification, Outcome, StreamRequest, StreamResponse,
    notifications_client::NotificationsClient, tokens_client::TokensClient,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Status, Streaming, transport::Channel};

use crate::cluster::Cluster;

/// Far longer than core takes for a response.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A stream from the first core.
pub(crate) struct Dispatcher {
    requests: mpsc::Sender<StreamRequest>,
    responses: Streaming<StreamResponse>,
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
        let mut request = Request::new(ReceiverStream::new(outgoing));
        let bearer = format!("Bearer {}", issued.into_inner().access_token);
        let metadata = request.metadata_mut();
        metadata.insert("authorization", bearer.parse().unwrap());
        let responses = NotificationsClient::new(channel).stream(request).await;
        Self {
            requests,
            responses: responses.unwrap().into_inner(),
        }
    }

    /// Grants credit and reports notifications as delivered.
    pub(crate) async fn report(&self, credit: u32, delivered: Vec<Notification>) {
        let outcomes = delivered.into_iter().map(|notification| Outcome {
            name: notification.name,
            lease_token: notification.lease_token,
            status: Some(204),
            ..Outcome::default()
        });
        let request = StreamRequest {
            credit,
            outcomes: outcomes.collect(),
            ..StreamRequest::default()
        };
        let sent = tokio::time::timeout(TIMEOUT, self.requests.send(request)).await;
        sent.expect("core should read requests").unwrap();
    }

    pub(crate) async fn next(&mut self) -> Result<StreamResponse, Status> {
        let response = tokio::time::timeout(TIMEOUT, self.responses.message()).await;
        let response = response.expect("core should send another response")?;
        Ok(response.expect("core should end a stream with a status"))
    }
}
