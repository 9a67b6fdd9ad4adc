//! Measures each call, logs those of the platform's services, and counts each as in flight until
//! the last byte of its response: a core drains them at shutdown. Idle connections do not count.

use std::{
    collections::HashSet,
    sync::{Arc, LazyLock},
    time::Duration,
};

use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt as _;
use process::{
    logs::milliseconds,
    metrics::{Counters, Durations, Labels, durations},
    traces::{self, KeyValue, TraceSpan},
};
use prost::Message as _;
use prost_types::FileDescriptorSet;
use tokio::time::Instant;
use tokio_util::task::{TaskTracker, task_tracker::TaskTrackerToken};
use tonic::{Code, Status, body::Body};
use tower::{Service, ServiceExt as _};
use tracing::{Instrument as _, Span};
use uuid::Uuid;

/// Stands for unknown methods.
const OTHER_METHOD: &str = "_OTHER";

/// Methods that are not in the contract.
const STANDARD_METHODS: [&str; 3] = [
    "grpc.health.v1.Health/Check",
    "grpc.health.v1.Health/Watch",
    "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
];

/// The rate limits of calls.
const LIMITS: [&str; 6] = [
    "client",
    "peer",
    "token-client",
    "token-peer",
    "tracking-link",
    "tracking-peer",
];

/// Identifies a request in the logs of all processes that it passes.
const REQUEST_ID: &str = "x-request-id";

const MAX_REQUEST_ID: usize = 128;

/// The prefix of the calls that are logged; health checks arrive twice a second.
const LOGGED: &str = "delivery.v1.";

/// Calls count as drained after about this long without any: a client may send a call before it
/// receives the GOAWAY frame.
const QUIET_PERIOD: Duration = Duration::from_secs(1);

/// Observes calls. Clones share what they record.
#[derive(Clone)]
pub(crate) struct CallObserver {
    pub(crate) metrics: Arc<CallMetrics>,
    pub(crate) in_flight: CallsInFlight,
}

impl CallObserver {
    /// Middleware: observes a call.
    pub(crate) async fn observe<S>(
        self,
        request: Request<Body>,
        inner: S,
    ) -> Result<Response<Body>, S::Error>
    where
        S: Service<Request<Body>, Response = Response<Body>>,
    {
        let method = self.metrics.method(request.uri().path());
        let trace = trace(method, request.headers());
        // Without the span of a gateway in the same process.
        let span = tracing::info_span!(
            parent: None,
            "call",
            request.id = %request_id(request.headers()),
            trace.id = trace.as_ref().map(|trace| tracing::field::display(trace.trace_id())),
            client.id = tracing::field::Empty,
        );
        let mut call = Call {
            method,
            started: Instant::now(),
            code: None,
            metrics: self.metrics,
            span: span.clone(),
            trace: trace.clone(),
            _in_flight: self.in_flight.token(),
        };
        let served = inner.oneshot(request).instrument(span);
        let response = traces::within(trace.as_ref(), served).await?;
        call.read_status(response.headers());
        Ok(response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                if let Some(trailers) = frame.trailers_ref() {
                    call.read_status(trailers);
                }
                frame
            }))
        }))
    }
}

/// Durations of calls, by method and code.
#[derive(Debug)]
pub(crate) struct CallMetrics {
    pub(crate) durations: Durations<Labels<2>>,
    /// Those that a server has: `delivery.v1.Tasks/GetTask`.
    methods: HashSet<&'static str>,
    pub(crate) rate_limited: Counters,
    pub(crate) shed: Counters,
}

impl CallMetrics {
    pub(crate) fn new() -> Self {
        Self {
            durations: durations(),
            methods: contract_methods().chain(STANDARD_METHODS).collect(),
            rate_limited: Counters::new("limit", &LIMITS),
            shed: Counters::new(
                "reason",
                &["calls", "token_requests", "peer", "connections", "memory"],
            ),
        }
    }

    /// The name of a path's method in metrics and logs.
    fn method(&self, path: &str) -> &'static str {
        let known = path
            .strip_prefix('/')
            .and_then(|name| self.methods.get(name));
        known.copied().unwrap_or(OTHER_METHOD)
    }

    /// Records a call. Returns the code's name.
    fn record(&self, method: &'static str, code: Code, duration: Duration) -> &'static str {
        let names = proto::CODE_NAMES;
        let name = names.get(code as usize).copied().unwrap_or("UNKNOWN");
        self.durations
            .get_or_create(&[("rpc_method", method), ("rpc_response_status_code", name)])
            .observe(duration.as_secs_f64());
        name
    }
}

/// The methods of the contract: `delivery.v1.Tasks/GetTask`. Allocated once in a process.
fn contract_methods() -> impl Iterator<Item = &'static str> {
    static METHODS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let files = FileDescriptorSet::decode(proto::DESCRIPTORS)
            .expect("the build has encoded the descriptors")
            .file;
        let services = files.iter().flat_map(|file| {
            let package = file.package();
            file.service.iter().map(move |service| (package, service))
        });
        services
            .flat_map(|(package, service)| {
                let methods = service.method.iter();
                methods.map(move |method| format!("{package}.{}/{}", service.name(), method.name()))
            })
            .collect()
    });
    METHODS.iter().map(String::as_str)
}

/// The calls in flight. Clones share the count.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallsInFlight(TaskTracker);

impl CallsInFlight {
    /// Completes when two consecutive checks, half a [`QUIET_PERIOD`] apart, find no call.
    pub(crate) async fn drained(&self) {
        let mut was_idle = false;
        loop {
            tokio::time::sleep(QUIET_PERIOD / 2).await;
            let is_idle = self.0.is_empty();
            if is_idle && was_idle {
                return;
            }
            was_idle = is_idle;
        }
    }

    /// Counts a call until the token is dropped.
    pub(crate) fn token(&self) -> TaskTrackerToken {
        self.0.token()
    }
}

/// A call in flight; recorded when it is dropped, which happens with the body of its response.
struct Call {
    method: &'static str,
    started: Instant,
    /// None until the end of the response.
    code: Option<Code>,
    metrics: Arc<CallMetrics>,
    span: Span,
    trace: Option<TraceSpan>,
    _in_flight: TaskTrackerToken,
}

impl Call {
    fn read_status(&mut self, headers: &HeaderMap) {
        if let Some(status) = Status::from_header_map(headers) {
            self.code = Some(status.code());
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let duration = self.started.elapsed();
        let code = self.code.unwrap_or(Code::Cancelled);
        let is_fault = is_fault(code);
        let code_name = self.metrics.record(self.method, code, duration);
        if self.method.starts_with(LOGGED) {
            let (method, milliseconds) = (self.method, milliseconds(duration));
            self.span.in_scope(|| {
                tracing::info!(
                    rpc.method = method,
                    rpc.status = code_name,
                    duration_ms = milliseconds,
                    "call served"
                );
            });
        }
        if let Some(trace) = self.trace.take() {
            trace.set(|| [KeyValue::new("rpc.response.status_code", code_name)]);
            if is_fault {
                trace.set_failed();
            }
            trace.end();
        }
    }
}

fn trace(method: &'static str, headers: &HeaderMap) -> Option<TraceSpan> {
    if !method.starts_with(LOGGED) {
        return None;
    }
    let trace = TraceSpan::of_request(format_args!("{method}"), headers)?;
    trace.set(|| {
        [
            KeyValue::new("rpc.system.name", "grpc"),
            KeyValue::new("rpc.method", method),
        ]
    });
    Some(trace)
}

/// Whether a code reports a fault of the server, by OpenTelemetry's conventions.
fn is_fault(code: Code) -> bool {
    matches!(
        code,
        Code::Unknown
            | Code::DeadlineExceeded
            | Code::Unimplemented
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss
    )
}

/// The id that the caller sent, if it is well-formed, else a new one.
fn request_id(headers: &HeaderMap) -> String {
    let sent = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/+=@".contains(&byte);
    sent.filter(|id| (1..=MAX_REQUEST_ID).contains(&id.len()) && id.bytes().all(is_safe))
        .map_or_else(|| Uuid::now_v7().to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use process::metrics::{Exposition, Unit};
    use tokio::time::sleep;

    use super::*;

    #[test]
    fn a_request_id_that_is_not_well_formed_is_replaced() {
        let id = |sent: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_str(sent).unwrap());
            request_id(&headers)
        };

        assert_eq!(id("root=1-67:x/y+z=@~."), "root=1-67:x/y+z=@~.");
        for wrong in ["", "a b", "a\"b", &"a".repeat(129)] {
            assert!(Uuid::parse_str(&id(wrong)).is_ok(), "{wrong}");
        }
        assert!(Uuid::parse_str(&request_id(&HeaderMap::new())).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_drained_once_two_checks_in_a_row_find_none() {
        let calls = CallsInFlight::default();
        let started = Instant::now();
        calls.drained().await;
        assert_eq!(started.elapsed(), QUIET_PERIOD);

        // The second check finds a call.
        let started = Instant::now();
        let late = async {
            sleep(QUIET_PERIOD * 3 / 4).await;
            let _token = calls.token();
            sleep(QUIET_PERIOD / 2).await;
        };
        tokio::join!(calls.drained(), late);
        assert_eq!(started.elapsed(), QUIET_PERIOD * 2);
    }

    #[tokio::test]
    async fn a_call_is_counted_by_a_method_of_the_contract_or_none() {
        let metrics = CallMetrics::new();
        let record = |path: &str, code| {
            let method = metrics.method(path);
            metrics.record(method, code, Duration::ZERO)
        };

        assert_eq!(record("/delivery.v1.Tasks/GetTask", Code::Ok), "OK");
        assert_eq!(
            record("/delivery.v1.Tasks/019b-an-id", Code::Unauthenticated),
            "UNAUTHENTICATED"
        );

        let mut exposition = Exposition::default();
        let durations = metrics.durations.clone();
        exposition
            .registry()
            .register_with_unit("calls", "Calls", Unit::Seconds, durations);
        let text = exposition.render().await;
        for labels in [
            r#"{rpc_method="delivery.v1.Tasks/GetTask",rpc_response_status_code="OK"} 1"#,
            r#"{rpc_method="_OTHER",rpc_response_status_code="UNAUTHENTICATED"} 1"#,
        ] {
            let line = format!("calls_seconds_count{labels}");
            assert!(text.contains(&line), "{line}\n{text}");
        }
        assert!(!text.contains("an-id"), "{text}");
    }
}
