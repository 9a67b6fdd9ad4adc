//! Tests of webhooks: a signed sample, sent now by a dispatcher that has a stream to this very
//! process. Only dispatchers connect to receivers: what is tried is what notifications go by, and
//! the guard of private addresses is the same.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::{
    id::{DeliveryId, NotificationId, StoreId},
    notification::Failure,
    webhook::Webhook,
};
use proto::{StreamResponse, iri::Collection};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use uuid::Uuid;

use super::{
    Core,
    caller::Caller,
    messages,
    notifications::{self, Response, Responses},
};

use crate::error::Error;

/// What every sample is said to be about. No delivery has this id, and none ever will.
const NO_DELIVERY: DeliveryId = DeliveryId(Uuid::nil());

/// How long an outcome is waited for. A dispatcher has 15 s of it: it leaves ten for its report.
const PATIENCE: Duration = Duration::from_secs(25);

/// How long a stream may take to take a test.
const ROOM: Duration = Duration::from_secs(1);

/// How many tests are under way at once: on a stream, and of a store's webhooks, so that no shop
/// takes the places of all.
const MOST_ON_A_STREAM: usize = 32;
const MOST_OF_A_STORE: usize = 4;

/// The streams that tests can be sent down.
#[derive(Debug, Default)]
pub(crate) struct WebhookTests(Arc<Mutex<Vec<Line>>>);

/// One stream.
#[derive(Debug)]
struct Line {
    id: Uuid,
    responses: mpsc::WeakSender<Response>,
    /// By the tests' names.
    waiting: HashMap<String, Waiting>,
}

/// Who waits for what comes of a test; told nothing if the stream ends.
#[derive(Debug)]
struct Waiting {
    store_id: StoreId,
    outcome: oneshot::Sender<proto::TestOutcome>,
}

/// A stream's own end of this. Dropped, the stream takes no tests any more.
#[derive(Debug)]
pub(super) struct TestLine {
    id: Uuid,
    lines: Arc<Mutex<Vec<Line>>>,
}

/// A place on a stream; given back when it is dropped.
struct Place<'a> {
    tests: &'a WebhookTests,
    line: Uuid,
    name: String,
}

impl WebhookTests {
    /// Enters a stream.
    pub(super) fn open(&self, responses: &Responses) -> TestLine {
        let id = Uuid::now_v7();
        lock(&self.0).push(Line {
            id,
            responses: responses.downgrade(),
            waiting: HashMap::new(),
        });
        TestLine {
            id,
            lines: Arc::clone(&self.0),
        }
    }

    /// Sends a test down a stream, and waits for what comes of it.
    async fn run(
        &self,
        store_id: StoreId,
        test: proto::Notification,
    ) -> Result<proto::TestOutcome, Error> {
        let name = test.name.clone();
        let (place, responses, outcome) = self.take_place(store_id, name)?;
        let room = timeout(ROOM, responses.reserve_owned()).await;
        let Ok(Ok(room)) = room else {
            return Err(Error::NoDispatcher);
        };
        // Nobody else keeps the stream open.
        drop(room.send(Ok(StreamResponse {
            tests: vec![test],
            ..StreamResponse::default()
        })));
        let told = timeout(PATIENCE, outcome).await;
        drop(place);
        match told {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(_)) | Err(_) => Err(Error::NoDispatcher),
        }
    }

    /// A place on the stream with the fewest tests under way, of several in turn.
    fn take_place(
        &self,
        store_id: StoreId,
        name: String,
    ) -> Result<(Place<'_>, Responses, oneshot::Receiver<proto::TestOutcome>), Error> {
        let mut lines = lock(&self.0);
        let of_the_store = lines
            .iter()
            .flat_map(|line| line.waiting.values())
            .filter(|waiting| waiting.store_id == store_id)
            .count();
        let free = lines
            .iter()
            .enumerate()
            .filter_map(|(index, line)| Some((index, line.responses.upgrade()?, line)))
            .min_by_key(|(_, _, line)| line.waiting.len());
        let Some((index, responses, _)) = free else {
            return Err(Error::NoDispatcher);
        };
        // The next is another one's, if there is another: this one's dispatcher may be stuck.
        let last = lines.len() - 1;
        lines[index..].rotate_left(1);
        let line = &mut lines[last];
        if of_the_store >= MOST_OF_A_STORE || line.waiting.len() >= MOST_ON_A_STREAM {
            return Err(storage::Error::Overloaded.into());
        }
        let (sender, outcome) = oneshot::channel();
        let waiting = Waiting {
            store_id,
            outcome: sender,
        };
        line.waiting.insert(name.clone(), waiting);
        let place = Place {
            tests: self,
            line: line.id,
            name,
        };
        Ok((place, responses, outcome))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        for line in lock(&self.tests.0).iter_mut() {
            if line.id == self.line {
                line.waiting.remove(&self.name);
            }
        }
    }
}

impl TestLine {
    /// Tells whoever waits what came of tests; nobody may any more.
    pub(super) fn tell(&self, outcomes: Vec<proto::TestOutcome>) {
        if outcomes.is_empty() {
            return;
        }
        let mut lines = lock(&self.lines);
        let Some(line) = lines.iter_mut().find(|line| line.id == self.id) else {
            return;
        };
        for test in outcomes {
            let name = test.outcome.as_ref().map(|outcome| outcome.name.as_str());
            if let Some(waiting) = name.and_then(|name| line.waiting.remove(name)) {
                let _ = waiting.outcome.send(test);
            }
        }
    }

    /// Takes no tests any more. Who waits is told so.
    pub(super) fn close(&self) {
        lock(&self.lines).retain(|line| line.id != self.id);
    }
}

impl Drop for TestLine {
    fn drop(&mut self) {
        self.close();
    }
}

/// What is behind these locks is changed by what can't panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    /// Sends a webhook a signed sample and tells how that went. One that is disabled is best
    /// tried before it is enabled again.
    pub(super) async fn test(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<proto::WebhookTest, Error> {
        let (webhook, _) = self.webhook_of(caller, name).await?;
        let owner = (webhook.store_id, webhook.id);
        let secrets = storage::webhook_secrets::find(self.storage.reader(), owner)
            .await?
            // Deleted since it was looked at.
            .ok_or_else(|| Error::NotFound {
                name: name.to_owned(),
            })?;
        let id = NotificationId::new();
        let sample = proto::Notification {
            name: Collection::Notifications.name(id),
            lease: prost_types::Duration::try_from(PATIENCE).ok(),
            url: webhook.url.clone(),
            secrets: self.live_secrets(webhook.id, &secrets)?,
            event: webhook.event.as_str().to_owned(),
            object: Collection::Deliveries.name(NO_DELIVERY),
            attempt: 1,
            ..proto::Notification::default()
        };

        let told = self.webhook_tests.run(webhook.store_id, sample).await?;

        Ok(message(&webhook, id, told))
    }
}

fn message(webhook: &Webhook, id: NotificationId, told: proto::TestOutcome) -> proto::WebhookTest {
    let outcome = told.outcome.unwrap_or_default();
    let status = outcome.status.and_then(|status| u16::try_from(status).ok());
    let failure = notifications::failure(outcome.failure, status);
    proto::WebhookTest {
        webhook: messages::webhook_name(webhook.id),
        url: webhook.url.clone(),
        id: id.to_string(),
        event: webhook.event.as_str().to_owned(),
        object: Collection::Deliveries.name(NO_DELIVERY),
        failure: failure.map_or("", Failure::as_str).to_owned(),
        detail: told.detail,
        dns: told.dns,
        connect: told.connect,
        tls: told.tls,
        tls_version: told.tls_version,
        duration: outcome.duration,
        status: outcome.status,
        answer: outcome.answer,
    }
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
    async fn without_a_stream_there_is_nobody_to_test() {
        let tests = WebhookTests::default();
        let told = tests.run(StoreId::new(), sample("a")).await;
        assert!(matches!(told, Err(Error::NoDispatcher)), "{told:?}");

        let (responses, _stream) = mpsc::channel(4);
        drop(tests.open(&responses));
        let told = tests.run(StoreId::new(), sample("a")).await;
        assert!(matches!(told, Err(Error::NoDispatcher)), "{told:?}");
    }

    #[tokio::test]
    async fn each_is_told_what_came_of_its_own_test() {
        let tests = WebhookTests::default();
        let (responses, mut stream) = mpsc::channel(4);
        let line = tests.open(&responses);
        let mut first = Box::pin(tests.run(StoreId::new(), sample("a")));
        let mut second = Box::pin(tests.run(StoreId::new(), sample("b")));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        assert_eq!(sent(stream.recv().await.unwrap()), ["a"]);
        assert_eq!(sent(stream.recv().await.unwrap()), ["b"]);

        line.tell(vec![outcome("b"), outcome("of nobody"), outcome("a")]);

        assert_eq!(first.await.unwrap(), outcome("a"));
        assert_eq!(second.await.unwrap(), outcome("b"));
    }

    #[tokio::test]
    async fn who_waits_is_told_when_the_stream_ends() {
        for says_so in [true, false] {
            let tests = WebhookTests::default();
            let (responses, mut stream) = mpsc::channel(4);
            let line = tests.open(&responses);
            let mut test = Box::pin(tests.run(StoreId::new(), sample("a")));
            assert!(test.as_mut().now_or_never().is_none());
            stream.recv().await.unwrap().unwrap();

            if says_so {
                line.close();
            } else {
                drop(line);
            }

            let told = test.await;
            assert!(matches!(told, Err(Error::NoDispatcher)), "{told:?}");
        }
    }

    /// A test goes to the stream with the fewest, and no store takes the places of all.
    #[tokio::test]
    async fn tests_are_spread_and_bounded() {
        let tests = WebhookTests::default();
        let (responses, streams): (Vec<_>, Vec<_>) = (0..2).map(|_| mpsc::channel(64)).unzip();
        let _lines: Vec<_> = responses
            .iter()
            .map(|responses| tests.open(responses))
            .collect();
        let mut under_way = Vec::new();
        let mut begin = |store_id, name: String| {
            let mut test = Box::pin(tests.run(store_id, sample(&name)));
            let refused = test.as_mut().now_or_never();
            under_way.push(test);
            refused
        };
        let store = StoreId::new();

        for number in 0..4 {
            assert!(begin(store, format!("{number}")).is_none());
        }
        let refused = begin(store, "one more".to_owned());
        assert!(
            matches!(
                refused,
                Some(Err(Error::Storage(storage::Error::Overloaded)))
            ),
            "{refused:?}"
        );
        for number in 4..64 {
            assert!(begin(StoreId::new(), format!("{number}")).is_none());
        }
        assert!(begin(StoreId::new(), "one more".to_owned()).is_some());
        for stream in &streams {
            assert_eq!(stream.len(), 32);
        }

        // Who goes away gives the place back.
        drop(under_way);
        let again = Box::pin(tests.run(store, sample("again"))).now_or_never();
        assert!(again.is_none(), "{again:?}");
    }
}
