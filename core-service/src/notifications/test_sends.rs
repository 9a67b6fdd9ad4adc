//! Test sends: sends sample notifications on the dispatchers' streams, and passes each outcome to
//! the caller that waits for it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use domain::id::StoreId;
use parking_lot::Mutex;
use proto::ReceiveResponse;
use tokio::{sync::oneshot, time::timeout};

use super::streams::Streams;

use crate::error::Error;

/// How long to wait for an outcome: the dispatcher's default deadline of 15 s, and 10 s for its
/// report.
pub(crate) const OUTCOME_TIMEOUT: Duration = Duration::from_secs(25);

/// The concurrency limits of this core, and of a store, so that one store cannot use all capacity.
const MAX_IN_FLIGHT: usize = 64;
const MAX_PER_STORE: usize = 4;

/// The samples that are sent on the streams of this process.
#[derive(Debug)]
pub(crate) struct TestSends {
    streams: Arc<Streams>,
    /// The samples by name.
    in_flight: Mutex<HashMap<String, InFlightTest>>,
}

/// A sample without an outcome yet.
#[derive(Debug)]
struct InFlightTest {
    store_id: StoreId,
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

    pub(crate) async fn send(
        &self,
        store_id: StoreId,
        sample: proto::Notification,
    ) -> Result<proto::Outcome, Error> {
        let name = sample.name.clone();
        let responses = self
            .streams
            .flow_control()
            .next()
            .ok_or(Error::NoDispatcher)?;
        let (_reservation, outcome) = self.reserve(store_id, &name)?;
        let sending = async move {
            let notifications = vec![sample];
            let response = ReceiveResponse { notifications };
            responses.send(Ok(response)).await.ok()?;
            // It would keep the stream open.
            drop(responses);
            outcome.await.ok()
        };
        let outcome = timeout(OUTCOME_TIMEOUT, sending).await;
        outcome.ok().flatten().ok_or(Error::NoDispatcher)
    }

    fn reserve<'a>(
        &'a self,
        store_id: StoreId,
        name: &'a str,
    ) -> Result<(TestReservation<'a>, oneshot::Receiver<proto::Outcome>), Error> {
        let mut in_flight = self.in_flight.lock();
        let of_store = in_flight.values().filter(|test| test.store_id == store_id);
        if of_store.count() >= MAX_PER_STORE || in_flight.len() >= MAX_IN_FLIGHT {
            return Err(storage::Error::Overloaded.into());
        }
        let (sender, outcome) = oneshot::channel();
        let test = InFlightTest {
            store_id,
            outcome: sender,
        };
        in_flight.insert(name.to_owned(), test);
        let reservation = TestReservation {
            test_sends: self,
            name,
        };
        Ok((reservation, outcome))
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
        test_sends.streams.flow_control().close(stream);
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
    async fn tests_go_to_each_stream_in_turn_and_are_limited_per_store_and_core() {
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
