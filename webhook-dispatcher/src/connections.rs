//! The connections to cores with a stream: outcomes can be reported to any of them.

use std::time::Duration;

use core_client::{Channel, CoreAddr};
use proto::{ReportOutcomesRequest, notifications_client::NotificationsClient};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
};

/// How long a core may take to record outcomes; then they are reported to another.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// An authorized connection to one core. It reconnects when it is lost.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub core: CoreAddr,
    pub channel: Channel,
    pub token: Token,
}

#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub authorization: MetadataValue<Ascii>,
    /// When a new one is due.
    pub renew_at: Instant,
}

impl Connection {
    pub(crate) async fn report(&self, request: ReportOutcomesRequest) -> Result<(), Status> {
        let mut client = NotificationsClient::new(self.channel.clone());
        let response = timeout(
            REPORT_TIMEOUT,
            client.report_outcomes(self.authorized(request)),
        );
        match response.await {
            Ok(response) => response.map(|_| ()),
            Err(_) => Err(Status::deadline_exceeded(format!(
                "core recorded nothing within {REPORT_TIMEOUT:?}"
            ))),
        }
    }

    pub(crate) fn authorized<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let authorization = self.token.authorization.clone();
        request
            .metadata_mut()
            .insert("authorization", authorization);
        request
    }
}

/// The last connection to each core, shared by all sessions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connections(watch::Sender<Vec<Connection>>);

impl Connections {
    /// Replaces the connection to the same core.
    pub(crate) fn insert(&self, connection: Connection) {
        self.0.send_modify(|connections| {
            connections.retain(|open| open.core != connection.core);
            connections.push(connection);
        });
    }

    pub(crate) fn remove(&self, core: &CoreAddr) {
        self.0
            .send_modify(|connections| connections.retain(|open| open.core != *core));
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Vec<Connection>> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use core_client::{CoreConfig, Cores};

    use super::*;

    #[tokio::test]
    async fn a_core_has_one_connection_until_it_is_removed() {
        let urls = ["http://127.0.0.1:1", "http://127.0.0.1:2"].map(|url| url.parse().unwrap());
        let cores = Cores::new(&urls, &CoreConfig::default()).unwrap();
        let addrs = cores.addresses().await.unwrap();
        let connection = |addr: &CoreAddr, token: &'static str| Connection {
            core: addr.clone(),
            channel: cores.channel(addr),
            token: Token {
                authorization: MetadataValue::from_static(token),
                renew_at: Instant::now(),
            },
        };
        let connections = Connections::default();
        let tokens = || {
            let open = connections.subscribe().borrow().clone();
            let tokens = open.into_iter().map(|open| open.token.authorization);
            tokens.collect::<Vec<_>>()
        };

        connections.insert(connection(&addrs[0], "first"));
        connections.insert(connection(&addrs[1], "second"));
        connections.insert(connection(&addrs[0], "renewed"));
        assert_eq!(tokens(), ["second", "renewed"]);

        connections.remove(&addrs[1]);
        assert_eq!(tokens(), ["renewed"]);
    }
}
