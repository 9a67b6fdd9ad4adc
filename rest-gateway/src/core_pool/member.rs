//! One core of the pool: its health, and its channel, which passes the current trace on.

use std::{sync::Arc, time::Duration};

use core_client::{Channel, ConnectError, CoreAddr, Cores, causes};
use process::traces::{self, KeyValue, TraceSpan};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tonic::{
    Code, GrpcMethod, Request, Response, Status,
    service::{Interceptor, interceptor::InterceptedService},
};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use super::transport_failure::TransportFailure;

const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The sum of this timeout and the interval limits how long a call waits for an unreachable core,
/// even if packets are dropped silently: less than two seconds.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);

/// A check that takes longer than its timeout by this is late because this process had no time for it. The response
/// may have arrived long before.
const MAX_LATENESS: Duration = Duration::from_millis(100);

/// All members; their order has no meaning.
pub(super) type Members = Vec<Arc<Member>>;

/// A core at one address.
pub(super) struct Member {
    pub(super) addr: CoreAddr,
    channel: Channel,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not checked yet. Called as if it were up.
    Unknown,
    Up,
    /// Reports that it is not ready, or shuts down. Calls to it may still succeed.
    NotReady,
    Down,
}

impl State {
    /// The name of the state in metrics.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Up => "up",
            Self::NotReady => "not_ready",
            Self::Down => "down",
        }
    }
}

impl Member {
    /// Checks the health at once, and periodically until the member is dropped.
    pub(super) fn new(cores: &Cores, addr: &CoreAddr) -> Arc<Self> {
        let member = Arc::new(Self {
            addr: addr.clone(),
            channel: cores.channel(addr),
            state: watch::Sender::new(State::Unknown),
        });
        let weak = Arc::downgrade(&member);
        tokio::spawn(async move {
            while let Some(member) = weak.upgrade() {
                member.check().await;
                drop(member);
                sleep(CHECK_INTERVAL).await;
            }
        });
        member
    }

    pub(super) fn channel(&self) -> CoreChannel {
        CoreChannel::new(self.channel.clone(), TraceHeaders)
    }

    pub(super) fn state(&self) -> State {
        *self.state.borrow()
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.state(), State::Unknown | State::Up)
    }

    /// Makes the member the last choice until a health check succeeds.
    pub(super) fn mark_down(&self, status: &Status) {
        self.set_state(State::Down, Some(status));
    }

    /// Waits for a response; none if the member goes down first. For a member that is down
    /// already, waits for the response alone.
    pub(super) async fn unless_down<T>(&self, response: impl Future<Output = T>) -> Option<T> {
        let mut state = self.state.subscribe();
        let down = async {
            if *state.borrow_and_update() == State::Down {
                std::future::pending::<()>().await;
            }
            let _ = state.wait_for(|state| *state == State::Down).await;
        };
        tokio::select! {
            biased;
            response = response => Some(response),
            () = down => None,
        }
    }

    async fn check(&self) {
        let mut health = HealthClient::new(self.channel());
        let started = Instant::now();
        let response = timeout(CHECK_TIMEOUT, health.check(HealthCheckRequest::default())).await;
        let is_late = started.elapsed() > CHECK_TIMEOUT + MAX_LATENESS;
        let state = match &response {
            Ok(Ok(response)) => match response.get_ref().status() {
                ServingStatus::NotServing => State::NotReady,
                _ => State::Up,
            },
            // Core has responded, if only with an error, such as that it has no health service.
            Ok(Err(status)) if TransportFailure::of(status).is_none() => State::Up,
            // Else a gateway without processor time would say that no core is ready.
            Err(_) if is_late => return,
            Ok(Err(_)) | Err(_) => State::Down,
        };
        self.set_state(state, response.ok().and_then(Result::err).as_ref());
    }

    /// `failed` is the error of the call from which the state follows; none if the call succeeded or
    /// timed out.
    fn set_state(&self, state: State, failed: Option<&Status>) {
        let before = self.state.send_replace(state);
        let core = &self.addr;
        match state {
            _ if before == state => {}
            State::Up if before == State::Unknown => {}
            State::Unknown => {}
            State::Up => tracing::info!(%core, "core is up"),
            State::NotReady => tracing::warn!(%core, "core is not ready or is shutting down"),
            State::Down => {
                let reason =
                    failed.map_or_else(|| format!("no response within {CHECK_TIMEOUT:?}"), reason);
                tracing::warn!(%core, reason, "core unreachable, retrying");
            }
        }
    }
}

/// Why a core cannot be called: the message of the connector's error, or of the root cause.
fn reason(status: &Status) -> String {
    causes(status)
        .find(|cause| cause.is::<ConnectError>())
        .or_else(|| causes(status).last())
        .map_or_else(|| status.to_string(), ToString::to_string)
}

/// A channel to a core that passes the current trace on.
pub(crate) type CoreChannel = InterceptedService<Channel, TraceHeaders>;

/// Adds the headers of the current span, and names it by the method.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TraceHeaders;

impl Interceptor for TraceHeaders {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(span) = TraceSpan::current() {
            if let Some(method) = request.extensions().get::<GrpcMethod<'_>>() {
                let name = format!("{}/{}", method.service(), method.method());
                span.rename(format_args!("{name}"));
                span.set(|| [KeyValue::new("rpc.method", name)]);
            }
            traces::inject(request.metadata_mut().as_mut());
        }
        Ok(request)
    }
}

/// The span of a call that begins now; the channel names it.
pub(super) fn trace_span() -> Option<TraceSpan> {
    let span = TraceSpan::of_call(format_args!("call"))?;
    span.set(|| [KeyValue::new("rpc.system.name", "grpc")]);
    Some(span)
}

/// Ends a span with the result of its call; `None` if it was abandoned because the core went down.
pub(super) fn end_span<T>(span: TraceSpan, result: Option<&Result<Response<T>, Status>>) {
    let code = match result {
        Some(Ok(_)) => Code::Ok,
        Some(Err(status)) => status.code(),
        None => Code::Unavailable,
    };
    let name = proto::CODE_NAMES.get(code as usize);
    span.set(|| {
        [KeyValue::new(
            "rpc.response.status_code",
            *name.unwrap_or(&"UNKNOWN"),
        )]
    });
    if code != Code::Ok {
        span.set_failed();
    }
    span.end();
}

#[cfg(test)]
mod tests {
    use tokio::{net::TcpListener, task::yield_now, time::advance};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_check_says_that_a_core_is_down_unless_this_process_was_late() {
        // It accepts connections, and answers nothing.
        let core = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let urls = [format!("http://{}", core.local_addr().unwrap())
            .parse()
            .unwrap()];
        let cores = Cores::new(&urls, &core_client::CoreConfig::default()).unwrap();
        let addrs = cores.addresses().await.unwrap();
        let member = Member::new(&cores, &addrs[0]);
        yield_now().await;

        advance(CHECK_TIMEOUT + MAX_LATENESS * 2).await;
        sleep(CHECK_INTERVAL / 2).await;
        assert_eq!(member.state(), State::Unknown);

        sleep(CHECK_INTERVAL + CHECK_TIMEOUT).await;
        assert_eq!(member.state(), State::Down);
    }

    #[test]
    fn each_state_has_a_name_of_its_own_in_metrics() {
        let states = [State::Unknown, State::Up, State::NotReady, State::Down];
        assert_eq!(
            states.map(State::name),
            ["unknown", "up", "not_ready", "down"]
        );
    }
}
