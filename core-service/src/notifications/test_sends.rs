//! Test sends: sends sample notifications on the dispatchers' streams, and passes each outcome to
//! the caller that waits for it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use domain::id::StoreId;
use parking_lot::Mutex;
use proto::ReceiveResponse;
use tokio::{sync::oneshot, time::timeout};

use super::streams::{DispatcherStream, Responses, Streams};

use crate::error::Error;

/// How long to wait for an outcome: the dispatcher's default deadline of 15 s, and 10 s for its
/// report.
pub(crate) const OUTCOME_TIMEOUT: Duration = Duration::from_secs(25);

/// How long to wait for capacity in a stream's send queue.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// The concurrency limits of a stream, and of a store, so that one store cannot use all capacity.
const MAX_PER_STREAM: usize = 32;
const MAX_PER_STORE: usize = 4;

/// The samples that are sent on the streams of this process.
#[derive(Debug)]
pub(crate) struct TestSends {
    streams: Arc<Streams>,
    /// By the names of the samples.
    in_flight: Mutex<HashMap<String, InFlightTest>>,
}

/// A sample without an outcome yet. Its caller fails when it is dropped.
#[derive(Debug)]
struct InFlightTest {
    store_id: StoreId,
    stream: Arc<DispatcherStream>,
    outcome: oneshot::Sender<proto::Outcome>,
}

/// A sample's place in [`TestSends::in_flight`], freed on drop.
struct TestReservation<'a> {
    test_sends: &'a TestSends,
    name: &'a str,
}

impl TestSends {
    pub(crate) fn new(streams: Arc<Streams>) -> Self {
        Self {
            streams,
            in_flight: Mutex::default(),
        }
    }

    /// Forwards outcomes to their callers, if those still wait here.
    pub(super) fn complete(&self, outcomes: Vec<proto::Outcome>) {
        let mut in_flight = self.in_flight.lock();
        for outcome in outcomes {
            if let Some(test) = in_flight.remove(&outcome.name) {
                let _ = test.outcome.send(outcome);
            }
        }
    }

    /// Fails the callers of a stream that was lost: its dispatcher may have ended without a report.
    pub(super) fn fail(&self, stream: &Arc<DispatcherStream>) {
        self.in_flight
            .lock()
            .retain(|_, test| !Arc::ptr_eq(&test.stream, stream));
    }

    /// Sends a sample on a stream and waits for its outcome.
    pub(crate) async fn send(
        &self,
        store_id: StoreId,
        sample: proto::Notification,
    ) -> Result<proto::Outcome, Error> {
        let name = sample.name.clone();
        let (_reservation, responses, outcome) = self.reserve(store_id, &name)?;
        let permit = timeout(SEND_TIMEOUT, responses.reserve_owned()).await;
        let Ok(Ok(permit)) = permit else {
            return Err(Error::NoDispatcher);
        };
        // The sender that `send` returns would keep the stream open.
        drop(permit.send(Ok(ReceiveResponse {
            notifications: vec![sample],
        })));
        match timeout(OUTCOME_TIMEOUT, outcome).await {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(_)) | Err(_) => Err(Error::NoDispatcher),
        }
    }

    /// Reserves a place on the stream with the fewest samples in flight.
    fn reserve<'a>(
        &'a self,
        store_id: StoreId,
        name: &'a str,
    ) -> Result<
        (
            TestReservation<'a>,
            Responses,
            oneshot::Receiver<proto::Outcome>,
        ),
        Error,
    > {
        // Held until the sample is in flight: a stream that closes meanwhile fails it.
        let mut in_flight = self.in_flight.lock();
        let count_on = |stream: &Arc<DispatcherStream>| {
            let tests = in_flight.values();
            tests
                .filter(|test| Arc::ptr_eq(&test.stream, stream))
                .count()
        };
        let stream = self.streams.least_loaded(count_on);
        let (stream, responses) = stream.ok_or(Error::NoDispatcher)?;
        let of_store = in_flight.values().filter(|test| test.store_id == store_id);
        if of_store.count() >= MAX_PER_STORE || count_on(&stream) >= MAX_PER_STREAM {
            return Err(storage::Error::Overloaded.into());
        }
        let (sender, outcome) = oneshot::channel();
        let test = InFlightTest {
            store_id,
            stream,
            outcome: sender,
        };
        in_flight.insert(name.to_owned(), test);
        let reservation = TestReservation {
            test_sends: self,
            name,
        };
        Ok((reservation, responses, outcome))
    }
}

impl Drop for TestReservation<'_> {
    fn drop(&mut self) {
        self.test_sends.in_flight.lock().remove(self.name);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::sync::mpsc;

    use super::{super::streams::Response, *};

    fn test_sends() -> TestSends {
        TestSends::new(Arc::new(Streams::new().0))
    }

    fn sample(name: &str) -> proto::Notification {
        proto::Notification {
            name: name.to_owned(),
            ..proto::Notification::default()
        }
    }

    fn outcome(name: &str) -> proto::Outcome {
        proto::Outcome {
            name: name.to_owned(),
            ..proto::Outcome::default()
        }
    }

    fn sent(response: Response) -> Vec<String> {
        let tests = response.unwrap().notifications.into_iter();
        tests.map(|test| test.name).collect()
    }

    #[tokio::test]
    async fn a_test_fails_without_an_open_stream() {
        let test_sends = test_sends();
        let result = test_sends.send(StoreId::new(), sample("a")).await;
        assert!(matches!(result, Err(Error::NoDispatcher)), "{result:?}");

        let (responses, _sent) = mpsc::channel(4);
        let (stream, _pre_leased) = test_sends.streams.open(&responses);
        test_sends.streams.close(&stream);
        let result = test_sends.send(StoreId::new(), sample("a")).await;
        assert!(matches!(result, Err(Error::NoDispatcher)), "{result:?}");
    }

    /// Such as one whose handler panicked.
    #[tokio::test]
    async fn a_stream_that_accepts_nothing_is_passed_over() {
        let test_sends = test_sends();
        let (responses, _) = mpsc::channel(4);
        let _broken = test_sends.streams.open(&responses);
        drop(responses);
        let (responses, mut stream) = mpsc::channel(4);
        let _open = test_sends.streams.open(&responses);

        for name in ["a", "b"] {
            let mut test = Box::pin(test_sends.send(StoreId::new(), sample(name)));
            assert!(test.as_mut().now_or_never().is_none());
            assert_eq!(sent(stream.recv().await.unwrap()), [name]);
        }
    }

    #[tokio::test]
    async fn each_caller_gets_the_outcome_of_its_own_test() {
        let test_sends = test_sends();
        let (responses, mut stream) = mpsc::channel(4);
        let _open = test_sends.streams.open(&responses);
        let mut first = Box::pin(test_sends.send(StoreId::new(), sample("a")));
        let mut second = Box::pin(test_sends.send(StoreId::new(), sample("b")));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        assert_eq!(sent(stream.recv().await.unwrap()), ["a"]);
        assert_eq!(sent(stream.recv().await.unwrap()), ["b"]);

        test_sends.complete(vec![outcome("b"), outcome("unknown"), outcome("a")]);

        assert_eq!(first.await.unwrap(), outcome("a"));
        assert_eq!(second.await.unwrap(), outcome("b"));
    }

    #[tokio::test]
    async fn a_test_fails_with_its_stream_unless_the_stream_is_half_closed() {
        for is_half_closed in [true, false] {
            let test_sends = test_sends();
            let (responses, mut sent) = mpsc::channel(4);
            let (stream, _pre_leased) = test_sends.streams.open(&responses);
            let mut test = Box::pin(test_sends.send(StoreId::new(), sample("a")));
            assert!(test.as_mut().now_or_never().is_none());
            sent.recv().await.unwrap().unwrap();

            test_sends.streams.close(&stream);
            if is_half_closed {
                let next = Box::pin(test_sends.send(StoreId::new(), sample("b"))).await;
                assert!(matches!(next, Err(Error::NoDispatcher)), "{next:?}");
                test_sends.complete(vec![outcome("a")]);
                assert_eq!(test.await.unwrap(), outcome("a"));
            } else {
                test_sends.fail(&stream);
                let result = test.now_or_never();
                assert!(
                    matches!(result, Some(Err(Error::NoDispatcher))),
                    "{result:?}"
                );
            }
            assert!(test_sends.in_flight.lock().is_empty());
        }
    }

    #[tokio::test]
    async fn tests_are_balanced_over_streams_and_limited_per_store_and_stream() {
        let test_sends = test_sends();
        let (responses, sent): (Vec<_>, Vec<_>) = (0..2).map(|_| mpsc::channel(64)).unzip();
        for responses in &responses {
            test_sends.streams.open(responses);
        }
        let mut in_flight = Vec::new();
        let mut begin = |store_id, name: String| {
            let mut test = Box::pin(test_sends.send(store_id, sample(&name)));
            let result = test.as_mut().now_or_never();
            in_flight.push(test);
            result
        };
        let store = StoreId::new();

        for number in 0..4 {
            assert!(begin(store, format!("{number}")).is_none());
        }
        let result = begin(store, "one more".to_owned());
        assert!(
            matches!(
                result,
                Some(Err(Error::Storage(storage::Error::Overloaded)))
            ),
            "{result:?}"
        );
        for number in 4..64 {
            assert!(begin(StoreId::new(), format!("{number}")).is_none());
        }
        assert!(begin(StoreId::new(), "one more".to_owned()).is_some());
        for sent in &sent {
            assert_eq!(sent.len(), 32);
        }

        // A cancelled call frees its capacity.
        drop(in_flight);
        let again = Box::pin(test_sends.send(store, sample("again"))).now_or_never();
        assert!(again.is_none(), "{again:?}");
    }
}
