//! Answers that were given before: asking a geocoder elsewhere takes time, and most permit a few
//! questions a second.

use std::time::{Duration, Instant};

use futures_util::{FutureExt, future::BoxFuture};
use moka::{Expiry, sync::Cache};
use sha2::{Digest, Sha256};

use super::{Answer, Error, Geocoder, Query, words};

/// Where answers are kept beyond the life of a process.
pub trait Kept: Send + Sync {
    /// An answer that is still good.
    fn find(&self, key: Key) -> BoxFuture<'_, Option<Answer>>;
    /// Keeps an answer for a while. Losing one is no harm.
    fn keep(&self, key: Key, answer: Answer, lifetime: Duration) -> BoxFuture<'_, ()>;
}

/// What an answer depends on, hashed: addresses of people are not kept as they were written.
pub type Key = [u8; 32];

/// A geocoder that remembers: in memory, and in what is kept.
pub struct Caching<G> {
    geocoder: G,
    /// Whose answers they are, and in which language.
    label: String,
    memory: Cache<Key, Answer>,
    kept: Option<Box<dyn Kept>>,
}

/// Of an address that was found.
const FOUND: Duration = Duration::from_hours(30 * 24);
/// Of one that was not: it may be a new house, or mended.
const NOT_FOUND: Duration = Duration::from_mins(5);
const MOST_IN_MEMORY: u64 = 10_000;
/// Answers for points as near as this are the same, in parts of a degree.
const AREA: f64 = 10.0;

impl<G: Geocoder> Caching<G> {
    pub fn new(geocoder: G, label: String, kept: Option<Box<dyn Kept>>) -> Self {
        Self {
            geocoder,
            label,
            memory: Cache::builder()
                .max_capacity(MOST_IN_MEMORY)
                .expire_after(ByAnswer)
                .build(),
            kept,
        }
    }

    async fn ask(&self, query: &Query) -> Result<Answer, Error> {
        let key = self.key(query);
        if let Some(answer) = self.memory.get(&key) {
            return Ok(answer);
        }
        if let Some(kept) = &self.kept
            && let Some(answer) = kept.find(key).await
        {
            self.memory.insert(key, answer.clone());
            return Ok(answer);
        }
        let answer = self.geocoder.geocode(query).await?;
        self.memory.insert(key, answer.clone());
        if let Some(kept) = &self.kept {
            kept.keep(key, answer.clone(), lifetime(&answer)).await;
        }
        Ok(answer)
    }

    /// The same for every case and accent of a text, and for every point of an area.
    fn key(&self, query: &Query) -> Key {
        let words: Vec<_> = query
            .text
            .split(|c: char| !c.is_alphanumeric())
            .map(words::folded)
            .filter(|word| !word.is_empty())
            .collect();
        let area = query.near.map(|near| {
            let coarse = |degrees: f64| (degrees * AREA).round();
            (coarse(near.latitude()), coarse(near.longitude()))
        });
        let text = format!(
            "{:?}",
            (&self.label, words, &query.country, area, query.demand)
        );
        Sha256::digest(text).into()
    }
}

impl<G: Geocoder> Geocoder for Caching<G> {
    fn geocode<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Answer, Error>> {
        self.ask(query).boxed()
    }
}

fn lifetime(answer: &Answer) -> Duration {
    match answer {
        Answer::Found(_) => FOUND,
        Answer::Unclear(_) | Answer::NotFound => NOT_FOUND,
    }
}

struct ByAnswer;

impl Expiry<Key, Answer> for ByAnswer {
    fn expire_after_create(&self, _: &Key, answer: &Answer, _: Instant) -> Option<Duration> {
        Some(lifetime(answer))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashMap,
        sync::{
            Arc, Mutex,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use super::*;
    use domain::address::LatLng;

    /// Counts what it is asked, and knows nothing.
    #[derive(Clone, Default)]
    struct Counting(Arc<AtomicUsize>);

    impl Geocoder for Counting {
        fn geocode<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Answer, Error>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let answer = match query.text.as_str() {
                "down" => Err(Error::Unavailable("down".into())),
                _ => Ok(Answer::NotFound),
            };
            std::future::ready(answer).boxed()
        }
    }

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<HashMap<Key, Answer>>>);

    impl Kept for Shared {
        fn find(&self, key: Key) -> BoxFuture<'_, Option<Answer>> {
            std::future::ready(self.0.lock().unwrap().get(&key).cloned()).boxed()
        }
        fn keep(&self, key: Key, answer: Answer, _: Duration) -> BoxFuture<'_, ()> {
            self.0.lock().unwrap().insert(key, answer);
            std::future::ready(()).boxed()
        }
    }

    #[tokio::test]
    async fn a_question_is_asked_once_however_it_is_written() {
        let counting = Counting::default();
        let caching = Caching::new(counting.clone(), "x".to_owned(), None);
        let near = |longitude| Query {
            near: LatLng::new(48.85, longitude).ok(),
            ..Query::new("24 rue")
        };
        let asked = async |query: Query| {
            caching.geocode(&query).await.unwrap();
            counting.0.load(Ordering::Relaxed)
        };

        assert_eq!(asked(Query::new("24 Rue de la Paix, Épinay")).await, 1);
        assert_eq!(asked(Query::new(" 24 RUE DE LA PAIX EPINAY ")).await, 1);
        assert_eq!(asked(Query::new("25 rue de la paix épinay")).await, 2);
        assert_eq!(asked(near(2.35)).await, 3);
        assert_eq!(asked(near(2.351)).await, 3);
        assert_eq!(asked(near(5.0)).await, 4);
    }

    #[tokio::test]
    async fn a_failure_is_not_remembered() {
        let counting = Counting::default();
        let caching = Caching::new(counting.clone(), "x".to_owned(), None);
        for _ in 0..2 {
            assert!(caching.geocode(&Query::new("down")).await.is_err());
        }
        assert_eq!(counting.0.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn another_process_finds_what_was_kept() {
        let (counting, shared) = (Counting::default(), Shared::default());
        for _ in 0..2 {
            let kept: Box<dyn Kept> = Box::new(shared.clone());
            let caching = Caching::new(counting.clone(), "x".to_owned(), Some(kept));
            caching.geocode(&Query::new("24 rue")).await.unwrap();
        }
        assert_eq!(counting.0.load(Ordering::Relaxed), 1);
        assert_eq!(shared.0.lock().unwrap().len(), 1);
    }
}
