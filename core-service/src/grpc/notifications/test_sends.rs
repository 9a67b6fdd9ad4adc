//! Test sends: registers the streams that can take sample notifications, and passes each outcome
//! to the caller that waits for it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::id::StoreId;
use proto::ReceiveResponse;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use uuid::Uuid;

use super::streams::{Response, Responses};

use crate::error::Error;

/// How long to wait for an outcome: the dispatcher's default deadline of 15 s, and 10 s for its
/// report.
pub(in crate::grpc) const OUTCOME_TIMEOUT: Duration = Duration::from_secs(25);

/// How long to wait for capacity in a stream's send queue.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// The concurrency limits of a stream, and of a store, so that one store cannot use all capacity.
const MAX_PER_STREAM: usize = 32;
const MAX_PER_STORE: usize = 4;

/// The streams that can take samples.
#[derive(Clone, Debug, Default)]
pub(in crate::grpc) struct TestSends(Arc<Mutex<Vec<OpenStream>>>);

#[derive(Debug)]
struct OpenStream {
    id: Uuid,
    responses: mpsc::WeakSender<Response>,
    is_half_closed: bool,
    /// By the samples' names.
    in_flight: HashMap<String, InFlightTest>,
}

/// A sample without an outcome yet; the sender is dropped when the stream closes.
#[derive(Debug)]
struct InFlightTest {
    store_id: StoreId,
    outcome: oneshot::Sender<proto::TestOutcome>,
}

/// A stream's handle, which unregisters the stream on drop; the callers of its samples fail.
#[derive(Debug)]
pub(super) struct TestStream {
    id: Uuid,
    streams: Arc<Mutex<Vec<OpenStream>>>,
}

/// Capacity on a stream, freed on drop.
struct TestReservation<'a> {
    test_sends: &'a TestSends,
    stream_id: Uuid,
    name: String,
}

impl TestSends {
    /// Registers a stream.
    pub(super) fn open(&self, responses: &Responses) -> TestStream {
        let id = Uuid::now_v7();
        lock(&self.0).push(OpenStream {
            id,
            responses: responses.downgrade(),
            is_half_closed: false,
            in_flight: HashMap::new(),
        });
        TestStream {
            id,
            streams: Arc::clone(&self.0),
        }
    }

    /// Forwards outcomes to their callers, if those still wait here.
    pub(super) fn complete(&self, outcomes: Vec<proto::TestOutcome>) {
        let mut streams = lock(&self.0);
        for outcome in outcomes {
            let reported = outcome.outcome.as_ref();
            let name = reported.map_or("", |outcome| outcome.name.as_str());
            let mut in_flight = streams.iter_mut().map(|stream| &mut stream.in_flight);
            if let Some(test) = in_flight.find_map(|in_flight| in_flight.remove(name)) {
                let _ = test.outcome.send(outcome);
            }
        }
    }

    /// Sends a sample on a stream and waits for its outcome.
    pub(in crate::grpc) async fn run(
        &self,
        store_id: StoreId,
        sample: proto::Notification,
    ) -> Result<proto::TestOutcome, Error> {
        let name = sample.name.clone();
        let (reservation, responses, outcome) = self.reserve(store_id, name)?;
        let permit = timeout(SEND_TIMEOUT, responses.reserve_owned()).await;
        let Ok(Ok(permit)) = permit else {
            return Err(Error::NoDispatcher);
        };
        // The sender that `send` returns would keep the stream open.
        drop(permit.send(Ok(ReceiveResponse {
            tests: vec![sample],
            ..ReceiveResponse::default()
        })));
        let result = timeout(OUTCOME_TIMEOUT, outcome).await;
        drop(reservation);
        match result {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(_)) | Err(_) => Err(Error::NoDispatcher),
        }
    }

    /// Reserves capacity on the stream with the fewest samples in flight, round robin among equals.
    fn reserve(
        &self,
        store_id: StoreId,
        name: String,
    ) -> Result<
        (
            TestReservation<'_>,
            Responses,
            oneshot::Receiver<proto::TestOutcome>,
        ),
        Error,
    > {
        let mut streams = lock(&self.0);
        let of_store = streams
            .iter()
            .flat_map(|stream| stream.in_flight.values())
            .filter(|test| test.store_id == store_id)
            .count();
        let least_loaded = streams
            .iter()
            .enumerate()
            .filter(|(_, stream)| !stream.is_half_closed)
            .filter_map(|(index, stream)| Some((index, stream.responses.upgrade()?, stream)))
            .min_by_key(|(_, _, stream)| stream.in_flight.len());
        let Some((index, responses, _)) = least_loaded else {
            return Err(Error::NoDispatcher);
        };
        // The next sample prefers another stream: this one's dispatcher may hang.
        let last = streams.len() - 1;
        streams[index..].rotate_left(1);
        let stream = &mut streams[last];
        if of_store >= MAX_PER_STORE || stream.in_flight.len() >= MAX_PER_STREAM {
            return Err(storage::Error::Overloaded.into());
        }
        let (sender, outcome) = oneshot::channel();
        let test = InFlightTest {
            store_id,
            outcome: sender,
        };
        stream.in_flight.insert(name.clone(), test);
        let reservation = TestReservation {
            test_sends: self,
            stream_id: stream.id,
            name,
        };
        Ok((reservation, responses, outcome))
    }
}

impl Drop for TestReservation<'_> {
    fn drop(&mut self) {
        lock(&self.test_sends.0).retain_mut(|stream| {
            if stream.id == self.stream_id {
                stream.in_flight.remove(&self.name);
            }
            !(stream.is_half_closed && stream.in_flight.is_empty())
        });
    }
}

impl TestStream {
    /// Takes no more samples. The outcomes of those in flight are still reported.
    pub(super) fn half_close(self) {
        for stream in lock(&self.streams).iter_mut() {
            if stream.id == self.id {
                stream.is_half_closed = true;
            }
        }
    }
}

impl Drop for TestStream {
    fn drop(&mut self) {
        let is_kept = |stream: &OpenStream| {
            let is_needed = stream.is_half_closed && !stream.in_flight.is_empty();
            stream.id != self.id || is_needed
        };
        lock(&self.streams).retain(is_kept);
    }
}

/// A poisoned lock is usable: no code that holds it panics halfway through a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn sample(name: &str) -> proto::Notification {
        proto::Notification {
            name: name.to_owned(),
            ..proto::Notification::default()
        }
    }

    fn outcome(name: &str) -> proto::TestOutcome {
        proto::TestOutcome {
            outcome: Some(proto::Outcome {
                name: name.to_owned(),
                ..proto::Outcome::default()
            }),
            ..proto::TestOutcome::default()
        }
    }

    fn sent(response: Response) -> Vec<String> {
        let tests = response.unwrap().tests.into_iter();
        tests.map(|test| test.name).collect()
    }

    #[tokio::test]
    async fn a_test_fails_without_an_open_stream() {
        let test_sends = TestSends::default();
        let result = test_sends.run(StoreId::new(), sample("a")).await;
        assert!(matches!(result, Err(Error::NoDispatcher)), "{result:?}");

        let (responses, _stream) = mpsc::channel(4);
        drop(test_sends.open(&responses));
        let result = test_sends.run(StoreId::new(), sample("a")).await;
        assert!(matches!(result, Err(Error::NoDispatcher)), "{result:?}");
    }

    #[tokio::test]
    async fn each_caller_gets_the_outcome_of_its_own_test() {
        let test_sends = TestSends::default();
        let (responses, mut stream) = mpsc::channel(4);
        let _test_stream = test_sends.open(&responses);
        let mut first = Box::pin(test_sends.run(StoreId::new(), sample("a")));
        let mut second = Box::pin(test_sends.run(StoreId::new(), sample("b")));
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
            let test_sends = TestSends::default();
            let (responses, mut stream) = mpsc::channel(4);
            let test_stream = test_sends.open(&responses);
            let mut test = Box::pin(test_sends.run(StoreId::new(), sample("a")));
            assert!(test.as_mut().now_or_never().is_none());
            stream.recv().await.unwrap().unwrap();

            if is_half_closed {
                test_stream.half_close();
                let next = Box::pin(test_sends.run(StoreId::new(), sample("b"))).await;
                assert!(matches!(next, Err(Error::NoDispatcher)), "{next:?}");
                test_sends.complete(vec![outcome("a")]);
                assert_eq!(test.await.unwrap(), outcome("a"));
            } else {
                drop(test_stream);
                let result = test.await;
                assert!(matches!(result, Err(Error::NoDispatcher)), "{result:?}");
            }
            assert!(lock(&test_sends.0).is_empty());
        }
    }

    #[tokio::test]
    async fn tests_are_balanced_over_streams_and_limited_per_store_and_stream() {
        let test_sends = TestSends::default();
        let (responses, streams): (Vec<_>, Vec<_>) = (0..2).map(|_| mpsc::channel(64)).unzip();
        let _test_streams: Vec<_> = responses
            .iter()
            .map(|responses| test_sends.open(responses))
            .collect();
        let mut in_flight = Vec::new();
        let mut begin = |store_id, name: String| {
            let mut test = Box::pin(test_sends.run(store_id, sample(&name)));
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
        for stream in &streams {
            assert_eq!(stream.len(), 32);
        }

        // A cancelled call frees its capacity.
        drop(in_flight);
        let again = Box::pin(test_sends.run(store, sample("again"))).now_or_never();
        assert!(again.is_none(), "{again:?}");
    }
}
