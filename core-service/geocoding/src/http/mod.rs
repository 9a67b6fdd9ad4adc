//! Geocoders with an HTTP API. Their responses are validated before use.

mod addok;
mod agreement;
mod nominatim;
mod pelias;
mod photon;
mod protocol;
mod selection;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use domain::id::StoreId;
use futures_util::{FutureExt, future::BoxFuture};
use http::StatusCode;
use moka::sync::Cache;
use process::logs::error_chain;
use tokio::{
    sync::{Mutex, Semaphore},
    time::{Instant, sleep_until, timeout_at},
};
use url::Url;

use super::{
    Error, GeocodeMatch, GeocodeResult, Geocoder, HttpGeocoderSpec, Mismatch, PartialMatch,
    Protocol, Query,
};
use protocol::{GeocodeRequest, Place};
use selection::Selection;
use upstream::{Client, Limits, Monitor};

/// A client of one geocoder service.
pub struct HttpGeocoder {
    spec: HttpGeocoderSpec,
    /// Of results; BCP 47.
    language: String,
    client: Client,
    /// When the rate limit permits the next request. Locked by the one request that waits for that;
    /// the next one of each store queues for it, in order of arrival.
    next_permitted_at: Mutex<Instant>,
    queues: Queues,
}

const MAX_RESPONSE_BYTES: usize = 256 * 1024;
/// Upper limit of the wait for the rate limiter.
const MAX_RATE_LIMIT_WAIT: Duration = Duration::from_secs(2);

type Failure = Box<dyn std::error::Error + Send + Sync>;

impl HttpGeocoder {
    /// `language` (BCP 47) is the default language of results, `name` is for metrics. Fails if TLS
    /// can't be set up.
    pub fn new(spec: &HttpGeocoderSpec, language: &str, name: &str) -> Result<Self, rustls::Error> {
        let options = &spec.options;
        let language = options.language.as_deref().unwrap_or(language);
        Ok(Self {
            spec: spec.clone(),
            language: language.to_owned(),
            client: Client::new(
                name,
                Limits {
                    timeout: options.timeout,
                    concurrency: options.concurrency.get().into(),
                    max_response_bytes: MAX_RESPONSE_BYTES,
                },
            )?,
            next_permitted_at: Mutex::new(Instant::now()),
            queues: Queues::new(options.concurrency.get().into()),
        })
    }

    /// Reads the measurements of the calls to this service.
    pub fn monitor(&self) -> Monitor {
        self.client.monitor()
    }

    async fn search(&self, query: &Query) -> Result<GeocodeResult, Failure> {
        let Some(request) = GeocodeRequest::new(query, &self.spec.options, &self.language) else {
            return Ok(GeocodeResult::NotFound);
        };
        let now = Instant::now();
        let timeout = self.spec.options.timeout;
        let queue = &*self.queues.of(query.store_id);
        let permit = timeout_at(now + timeout / 2, queue.permits.acquire()).await;
        let Ok(Ok(_permit)) = permit else {
            return Err(upstream::Error::Busy.into());
        };
        let search = Search {
            geocoder: self,
            queue,
            request_deadline: now + self.spec.options.request_time(),
            deadline: now + timeout,
        };
        let places = search.places(&request).await?;
        match selection::select(places, query, &request.countries) {
            Selection::Result(result) => Ok(result),
            Selection::IfNoOtherTown {
                found,
                postcode,
                towns,
            } => {
                let Some(town) = search.other_town(&found, towns, request).await? else {
                    return Ok(GeocodeResult::Found(found));
                };
                let mismatch = match postcode {
                    Some(postcode) => Mismatch::Contradiction { postcode, town },
                    None => Mismatch::OtherPlace(town),
                };
                let partial = PartialMatch::new(mismatch, vec![found]);
                Ok(GeocodeResult::Partial(partial))
            }
        }
    }

    /// Waits until the rate limit permits a request: stores take turns. Fails if it does not before
    /// `request_deadline`.
    async fn wait_for_rate_limit(
        &self,
        queue: &Queue,
        request_deadline: Instant,
    ) -> Result<(), Failure> {
        let arrived_at = Instant::now();
        if arrived_at >= request_deadline {
            return Err("too little time is left for another request".into());
        }
        let permitted = async {
            let _turn_in_store = queue.rate_limit.lock().await;
            let mut next_permitted_at = self.next_permitted_at.lock().await;
            sleep_until(*next_permitted_at).await;
            let interval = Duration::from_secs(1) / self.spec.options.rate.get();
            // Not from now: timers are up to some milliseconds late, and that would add up.
            *next_permitted_at = arrived_at.max(*next_permitted_at) + interval;
        };
        timeout_at(
            request_deadline.min(arrived_at + MAX_RATE_LIMIT_WAIT),
            permitted,
        )
        .await
        .map_err(|_| "rate limit exceeded".into())
    }

    fn url(&self, request: &GeocodeRequest) -> Url {
        let (path, parameters) = match self.spec.protocol {
            Protocol::Nominatim => nominatim::parameters(request),
            Protocol::Photon => photon::parameters(request),
            Protocol::Addok => addok::parameters(request),
            Protocol::Pelias => pelias::parameters(request),
        };
        let mut url = self.spec.base_url.clone();
        url.set_path(&format!("{}{path}", url.path().trim_end_matches('/')));
        url.query_pairs_mut().extend_pairs(parameters);
        url
    }
}

/// The requests for one query.
struct Search<'a> {
    geocoder: &'a HttpGeocoder,
    queue: &'a Queue,
    /// A later request would have no time for its response, and count as a failure of the service.
    request_deadline: Instant,
    deadline: Instant,
}

impl Search<'_> {
    /// The first of these names that the service knows as a town, unless it is a name of the
    /// place's town.
    async fn other_town(
        &self,
        found: &GeocodeMatch,
        towns: Vec<String>,
        mut request: GeocodeRequest,
    ) -> Result<Option<String>, Failure> {
        request.near = request.near.and(Some(found.lat_lng));
        for town in towns {
            request.text.clone_from(&town);
            let places = self.places(&request).await?;
            if let Some(is_same) = selection::has_town_of(found, places, &request) {
                return Ok((!is_same).then_some(town));
            }
        }
        Ok(None)
    }

    async fn places(&self, request: &GeocodeRequest) -> Result<Vec<Place>, Failure> {
        let geocoder = self.geocoder;
        geocoder
            .wait_for_rate_limit(self.queue, self.request_deadline)
            .await?;
        let url = geocoder.url(request);
        let response = geocoder
            .client
            .get_with_deadline(&url, self.deadline)
            .await?;
        match response.status {
            status if status.is_success() => {}
            // The service rejects only this query.
            StatusCode::BAD_REQUEST
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::URI_TOO_LONG
            | StatusCode::UNPROCESSABLE_ENTITY => {
                return Ok(Vec::new());
            }
            status => return Err(format!("rejected with status {status}").into()),
        }
        let places = match geocoder.spec.protocol {
            Protocol::Nominatim => nominatim::places(&response.body),
            Protocol::Photon => photon::places(&response.body),
            Protocol::Addok => addok::places(&response.body),
            Protocol::Pelias => pelias::places(&response.body),
        };
        places.map_err(|error| format!("invalid response: {error}").into())
    }
}

impl Geocoder for HttpGeocoder {
    fn geocode<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<GeocodeResult, Error>> {
        async move {
            self.search(query).await.map_err(|failure| {
                Error::Unavailable(
                    format!(
                        "{} ({}): {}",
                        self.spec.protocol,
                        self.spec.base_url.host_str().unwrap_or_default(),
                        error_chain(&*failure)
                    )
                    .into(),
                )
            })
        }
        .boxed()
    }
}

/// How long the queue of a store without requests is kept.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// Shares a service among stores: the requests of one store wait for each other and do not delay those of
/// others.
#[derive(Debug)]
struct Queues {
    /// `None`: requests for no store.
    queues: Cache<Option<StoreId>, Arc<Queue>>,
    requests_per_store: usize,
}

#[derive(Debug)]
struct Queue {
    /// Permits for requests in flight: half of the service's limit, so that the other half is left
    /// for other stores.
    permits: Semaphore,
    /// Locked by the one request of the store that waits for the service's rate limit.
    rate_limit: Mutex<()>,
}

impl Queues {
    /// For a service with this limit of concurrent requests.
    fn new(concurrency: usize) -> Self {
        Self {
            queues: Cache::builder().time_to_idle(IDLE_TIMEOUT).build(),
            requests_per_store: concurrency.div_ceil(2),
        }
    }

    fn of(&self, store_id: Option<StoreId>) -> Arc<Queue> {
        self.queues.get_with(store_id, || {
            Arc::new(Queue {
                permits: Semaphore::new(self.requests_per_store),
                rate_limit: Mutex::new(()),
            })
        })
    }
}
