//! Serves a dispatcher stream from its opening to its end, and dispatchers' reports.

use std::{pin::Pin, sync::Arc};

use domain::scheduling::LEASE_DURATION;
use futures_util::{Stream, TryStreamExt as _};
use proto::iri::Collection;
use tonic::Status;
use uuid::Uuid;

use super::{
    Queue,
    flow_control::LeasedReceiver,
    reports,
    streams::{LeasedNotification, Responses},
};
use storage::notifications::AttemptReport;

use crate::{call_limits::message_too_large, error::Error, secrets::webhook_secret_box};

/// How many notifications fill a message.
const MAX_PER_MESSAGE: usize = 256;

impl Queue {
    /// Serves a stream until its dispatcher half-closes or disconnects, its token expires, its
    /// client is no longer permitted, or core shuts down. Then releases the leases of what it has not
    /// sent.
    pub(crate) async fn serve(
        self: &Arc<Self>,
        requests: impl Stream<Item = Result<proto::ReceiveRequest, Status>> + Unpin,
        responses: &Responses,
        revoked: Pin<&mut (dyn Future<Output = Error> + Send)>,
    ) -> Result<(), Status> {
        let (stream, mut leased) = self.streams.open(responses);
        let mut unsent = Vec::new();
        let ended = tokio::select! {
            () = self.shutdown.cancelled() => Err(Error::ShuttingDown.into()),
            error = revoked => Err(error.into()),
            received = self.receive(requests, stream) => received,
            () = self.push(&mut leased, &mut unsent, responses) => Ok(()),
        };
        self.streams.flow_control().close(stream);
        leased.close();
        // Waits for what is being sent, which `try_recv` would miss.
        while let Some(leased) = leased.recv().await {
            unsent.extend(leased);
        }
        let unsent = unsent.iter().map(|unsent| unsent.claimed.lease);
        let released = self.release(unsent.collect()).await;
        ended.and(released.map_err(Into::into))
    }

    /// Receives credit until the dispatcher half-closes. Fails if it disconnects, or sends what is no request.
    async fn receive(
        &self,
        mut requests: impl Stream<Item = Result<proto::ReceiveRequest, Status>> + Unpin,
        stream: Uuid,
    ) -> Result<(), Status> {
        loop {
            let request = requests
                .try_next()
                .await
                .map_err(|status| message_too_large(&status).map_or(status, Status::from))?;
            let Some(request) = request else {
                return Ok(());
            };
            self.streams.grant(stream, request.capacity);
        }
    }

    /// Records the outcomes of a report, and passes on those of test sends. If it fails, the dispatcher
    /// reports the same again, which changes nothing that is already recorded.
    pub(crate) async fn report(&self, report: proto::ReportOutcomesRequest) -> Result<(), Error> {
        let outcomes = report.outcomes.into_iter();
        let (of_tests, outcomes): (Vec<_>, Vec<_>) =
            outcomes.partition(|outcome| outcome.lease_token.is_empty());
        self.test_sends.complete(of_tests);
        let attempts: Vec<_> = outcomes.iter().filter_map(reports::attempt).collect();
        self.record(&attempts).await
    }

    /// Sends leased notifications until the dispatcher disconnects. At any time, `unsent` has those that
    /// were taken from the queue and not sent.
    async fn push(
        self: &Arc<Self>,
        leased: &mut LeasedReceiver,
        unsent: &mut Vec<LeasedNotification>,
        responses: &Responses,
    ) {
        while let Some(first) = leased.recv().await {
            unsent.extend(first);
            while unsent.len() < MAX_PER_MESSAGE
                && let Ok(more) = leased.try_recv()
            {
                unsent.extend(more);
            }
            let Ok(permit) = responses.reserve().await else {
                return;
            };
            let (mut notifications, mut undecryptable) = (Vec::new(), Vec::new());
            for leased in unsent.drain(..) {
                let lease = leased.claimed.lease;
                match self.notification(leased) {
                    Ok(notification) => notifications.push(notification),
                    Err(error) => {
                        tracing::error!(
                            error = &error as &dyn std::error::Error,
                            notification.id = %lease.id,
                            "a notification cannot be sent"
                        );
                        self.streams.flow_control().return_credit(lease);
                        undecryptable.push(reports::undecryptable(lease));
                    }
                }
            }
            permit.send(Ok(proto::ReceiveResponse { notifications }));
            let queue = Arc::clone(self);
            // Runs to its end even if the stream ends: what is committed also frees hosts.
            let recording =
                tokio::spawn(async move { queue.record_undecryptable(&undecryptable).await });
            let _ = recording.await;
        }
    }

    /// Records failed attempts of notifications whose secret cannot be decrypted. If that fails,
    /// they are found again when their leases expire.
    async fn record_undecryptable(&self, undecryptable: &[AttemptReport]) {
        if let Err(error) = self.record(undecryptable).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot record notifications that cannot be sent"
            );
        }
    }

    /// The message of a notification, with what is left of its lease.
    fn notification(&self, leased: LeasedNotification) -> Result<proto::Notification, Error> {
        let LeasedNotification { claimed, leased_at } = leased;
        let lease = LEASE_DURATION.saturating_sub(leased_at.elapsed());
        let target = claimed.target;
        let now = self.clock.now();
        let (id, secrets) = (target.key.webhook_id, &target.secrets);
        let secrets = webhook_secret_box::decrypt_valid(&self.secret_box, id, secrets, now)?;
        Ok(proto::Notification {
            name: Collection::Notifications.name(claimed.lease.id),
            lease_token: claimed.lease.token.to_string(),
            lease: prost_types::Duration::try_from(lease).ok(),
            url: target.url,
            secrets,
            event: claimed.event,
            object: Collection::Deliveries.name(claimed.delivery_id),
            attempt: claimed.attempts.saturating_add(1),
            traceparent: claimed.traceparent.unwrap_or_default(),
            test: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, time::Duration};

    use domain::id::StoreId;
    use futures_util::{FutureExt as _, StreamExt as _, stream};
    use tokio::sync::mpsc;
    use tonic::Code;

    use super::{
        super::fixture::{ago, queue},
        *,
    };

    #[tokio::test]
    async fn a_notification_is_sent_with_what_is_left_of_its_lease() {
        let (_directory, queue, _unsent_leases) = queue().await;
        let (responses, mut sent) = mpsc::channel(1);
        let (sender, mut leased) = mpsc::unbounded_channel();
        for seconds in [20, 5] {
            let leased = LeasedNotification {
                claimed: queue.sendable_notification(),
                leased_at: ago(seconds),
            };
            sender.send(vec![leased]).unwrap();
        }
        drop(sender);

        queue.push(&mut leased, &mut Vec::new(), &responses).await;

        let sent = sent.try_recv().unwrap().unwrap().notifications;
        let left = sent.iter().map(|notification| {
            let lease = Duration::try_from(notification.lease.unwrap()).unwrap();
            // The message was built a moment ago.
            lease.as_secs() + 1
        });
        assert_eq!(left.collect::<Vec<_>>(), [40, 55]);
    }

    #[tokio::test]
    async fn a_stream_that_ends_releases_what_it_has_not_sent() {
        let (_directory, queue, _unsent_leases) = queue().await;
        let unsent = [
            queue.lease_one(LEASE_DURATION).await,
            queue.lease_one(LEASE_DURATION).await,
        ];
        let (responses, _sent) = mpsc::channel(1);
        let revoked = pin!(std::future::pending::<Error>());
        let grant = stream::iter([Ok(proto::ReceiveRequest { capacity: 2 })]);
        let requests = grant.chain(stream::pending());
        let mut serving = pin!(queue.serve(requests, &responses, revoked));
        assert!(serving.as_mut().now_or_never().is_none());
        // The dispatcher does not read.
        let response = proto::ReceiveResponse::default();
        responses.try_send(Ok(response)).unwrap();
        for lease in unsent {
            let mut claimed = queue.sendable_notification();
            claimed.lease = lease;
            let leased_at = ago(0);
            let leased = LeasedNotification { claimed, leased_at };
            assert_eq!(queue.streams.flow_control().send_claimed([leased]), []);
            assert!(serving.as_mut().now_or_never().is_none());
        }
        assert!(!queue.is_any_due().await);

        queue.shutdown.cancel();
        assert_eq!(serving.await.unwrap_err().code(), Code::Unavailable);

        assert!(queue.is_any_due().await);
        let notifications_ready = queue.streams.notifications_ready.subscribe();
        queue.release(unsent.to_vec()).await.unwrap();
        assert!(
            !notifications_ready.has_changed().unwrap(),
            "all are released"
        );
    }

    #[tokio::test]
    async fn the_caller_of_a_test_send_gets_its_reported_outcome() {
        let (_directory, queue, _unsent_leases) = queue().await;
        let (responses, _sent) = mpsc::channel(1);
        let _open = queue.streams.open(&responses);
        let sample = proto::Notification::default();
        let mut test = pin!(queue.test_sends.send(StoreId::new(), sample));
        assert!(test.as_mut().now_or_never().is_none());
        let outcome = |lease_token: &str| proto::Outcome {
            lease_token: lease_token.to_owned(),
            ..proto::Outcome::default()
        };
        let report = |lease_token| proto::ReportOutcomesRequest {
            outcomes: vec![outcome(lease_token)],
        };

        queue.report(report("lease-1")).await.unwrap();
        assert!(test.as_mut().now_or_never().is_none(), "not its outcome");
        queue.report(report("")).await.unwrap();

        assert_eq!(test.await.unwrap(), outcome(""));
    }
}
