//! Calls the cores: round robin over all of them, with failover, in the trace of the request.

mod health;
mod transport_failure;

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use core_client::{Channel, CoreAddr, Cores, Discovery};
use process::{
    metrics::Sample,
    traces::{self, KeyValue, TraceSpan},
};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};
use tokio_util::task::AbortOnDropHandle;
use tonic::{
    Code, GrpcMethod, Request, Response, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
};

use self::transport_failure::TransportFailure;
use crate::error::Error;

/// A method of a generated client as a function: `rpc!(TasksClient.get_task)` takes a channel and
/// a message.
macro_rules! rpc {
    ($client:ident.$method:ident) => {
        |core, message| async { $client::new(core).$method(message).await }
    };
}

pub(crate) use rpc;

/// The metadata and the deadline of a call.
#[derive(Clone)]
pub(crate) struct CallOptions {
    pub(crate) authorization: Option<MetadataValue<Ascii>>,
    /// The address of the client that core counts the call against, if it has no token.
    pub(crate) forwarded_for: Option<IpAddr>,
    pub(crate) request_id: Option<MetadataValue<Ascii>>,
    pub(crate) deadline: Instant,
    /// Whether two executions have the same effect as one: the call may be retried on another core
    /// after its response was lost. Others are retried only if core certainly did not process them.
    pub(crate) is_idempotent: bool,
}

impl CallOptions {
    /// A request with these options. Core gets the remaining time as its timeout,
    /// unless it is called within this process.
    fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        request.set_timeout(self.deadline.saturating_duration_since(Instant::now()));
        let metadata = request.metadata_mut();
        if let Some(authorization) = &self.authorization {
            let mut authorization = authorization.clone();
            authorization.set_sensitive(true);
            metadata.insert("authorization", authorization);
        }
        let forwarded_for = self.forwarded_for.map(|address| address.to_string());
        if let Some(Ok(address)) = forwarded_for.map(MetadataValue::try_from) {
            metadata.insert(proto::FORWARDED_FOR, address);
        }
        if let Some(request_id) = &self.request_id {
            metadata.insert("x-request-id", request_id.clone());
        }
        request
    }
}

/// The cores that discovery finds.
pub(crate) struct CorePool {
    members: watch::Receiver<Members>,
    discovery: Arc<Discovery>,
    /// The round-robin counter.
    next: AtomicUsize,
    _updates: AbortOnDropHandle<()>,
}

impl CorePool {
    /// Connects to a core at its first call.
    pub(crate) fn new(cores: Cores) -> Self {
        let discovery = Arc::new(cores.discover());
        let mut addrs = discovery.addresses.clone();
        let initial = members_at(&cores, &Members::default(), &addrs.borrow_and_update());
        let (sender, members) = watch::channel(initial);
        let updates = tokio::spawn(async move {
            while addrs.changed().await.is_ok() {
                let updated = members_at(&cores, &sender.borrow(), &addrs.borrow_and_update());
                sender.send_replace(updated);
            }
        });
        Self {
            members,
            discovery,
            next: AtomicUsize::new(0),
            _updates: AbortOnDropHandle::new(updates),
        }
    }

    /// How many cores have each state.
    pub(crate) fn states(&self) -> Vec<Sample> {
        let members = self.members.borrow();
        [State::Unknown, State::Up, State::NotReady, State::Down]
            .map(|state| {
                let count = members.iter().filter(|member| member.state() == state);
                Sample::count(&[("state", state.name())], count.count())
            })
            .into()
    }

    /// Whether a core says that it is ready.
    pub(crate) fn is_any_up(&self) -> bool {
        let members = self.members.borrow();
        members.iter().any(|member| member.state() == State::Up)
    }

    /// Calls an rpc on one core, and retries on the others if it is unreachable.
    pub(crate) async fn call<M: Clone, R>(
        &self,
        options: CallOptions,
        message: M,
        rpc: impl AsyncFn(CoreChannel, Request<M>) -> Result<Response<R>, Status>,
    ) -> Result<Response<R>, Error> {
        let mut last_status = None;
        let mut candidates = self.candidates(&options).await.into_iter().peekable();
        while let Some(member) = candidates.next() {
            let span = call_span();
            // Boxed to keep the futures of handlers small.
            let response = Box::pin(traces::within(
                span.as_ref(),
                rpc(member.channel(), options.request(message.clone())),
            ));
            let result = if options.is_idempotent && candidates.peek().is_some() {
                member.unless_down(response).await
            } else {
                // No other core is left, or the call is unsafe to repeat: it may have taken effect
                // although the core seems down. Only the end of the connection or the deadline
                // ends the wait for the response.
                Some(response.await)
            };
            if let Some(span) = span {
                end_span(span, result.as_ref());
            }
            match result {
                None => {}
                Some(Ok(response)) => return Ok(response),
                Some(Err(status)) => {
                    let failure = TransportFailure::of(&status);
                    if failure == Some(TransportFailure::NotProcessed) {
                        member.mark_down(&status);
                        self.discovery.refresh();
                    }
                    last_status = Some(status);
                    match failure {
                        Some(TransportFailure::NotProcessed) => {}
                        Some(TransportFailure::ResponseLost) if options.is_idempotent => {}
                        Some(TransportFailure::ResponseLost) | None => break,
                    }
                }
            }
        }
        let status = last_status.unwrap_or_else(|| {
            Status::unavailable("no host name of a core resolves to an address")
        });
        Err(Error::from(status))
    }

    /// All cores in the order to try them. Waits until the deadline if no address is known yet.
    async fn candidates(&self, options: &CallOptions) -> Vec<Arc<Member>> {
        let mut members = self.members.clone();
        let found = members.wait_for(|members| !members.is_empty());
        let Ok(Ok(known)) = timeout_at(options.deadline, found).await else {
            return Vec::new();
        };
        let start = self.next.fetch_add(1, Ordering::Relaxed);
        round_robin(&known, start, |member| member.is_up())
    }
}

/// All members; their order has no meaning.
type Members = Vec<Arc<Member>>;

/// A core at one address.
struct Member {
    addr: CoreAddr,
    channel: Channel,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not checked yet. Called as if it were up.
    Unknown,
    Up,
    /// Reports that it is not ready, or shuts down. Calls to it may still succeed.
    NotReady,
    Down,
}

impl State {
    /// The name of the state in metrics.
    fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Up => "up",
            Self::NotReady => "not_ready",
            Self::Down => "down",
        }
    }
}

impl Member {
    fn channel(&self) -> CoreChannel {
        CoreChannel::new(self.channel.clone(), TraceHeaders)
    }

    fn state(&self) -> State {
        *self.state.borrow()
    }

    fn is_up(&self) -> bool {
        matches!(self.state(), State::Unknown | State::Up)
    }

    /// Waits for a response; none if the member goes down first. For a member that is down
    /// already, waits for the response alone.
    async fn unless_down<T>(&self, response: impl Future<Output = T>) -> Option<T> {
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
fn call_span() -> Option<TraceSpan> {
    let span = TraceSpan::of_call(format_args!("call"))?;
    span.set(|| [KeyValue::new("rpc.system.name", "grpc")]);
    Some(span)
}

/// Ends a span with the result of its call; `None` if it was abandoned because the core went down.
fn end_span<T>(span: TraceSpan, result: Option<&Result<Response<T>, Status>>) {
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

/// The members at these addresses; those that existed before are reused with their state.
fn members_at(cores: &Cores, before: &Members, addrs: &[CoreAddr]) -> Members {
    let members = addrs.iter().map(|addr| {
        let known = before.iter().find(|member| member.addr == *addr);
        known.map_or_else(|| Member::new(cores, addr), Arc::clone)
    });
    members.collect()
}

/// All members, rotated by `start`, with those that are not up last.
fn round_robin<T: Clone>(members: &[T], start: usize, is_up: impl Fn(&T) -> bool) -> Vec<T> {
    let mut order = members.to_vec();
    if !order.is_empty() {
        order.rotate_left(start % members.len());
    }
    // The sort is stable, so both groups keep the rotated order.
    order.sort_by_cached_key(|member| !is_up(member));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_core_keeps_its_state_when_others_join_or_leave() {
        let urls = ["http://127.0.0.1:1", "http://127.0.0.1:2"].map(|url| url.parse().unwrap());
        let cores = Cores::new(&urls, &core_client::CoreConfig::default()).unwrap();
        let addrs = cores.addresses().await.unwrap();
        let first = members_at(&cores, &Members::new(), &addrs[..1]);

        let both = members_at(&cores, &first, &addrs);
        let second = members_at(&cores, &both, &addrs[1..]);

        assert!(Arc::ptr_eq(&first[0], &both[0]));
        assert_eq!(both.len(), 2);
        assert!(Arc::ptr_eq(&both[1], &second[0]));
        assert_eq!(second.len(), 1);
    }

    #[test]
    fn members_rotate_and_those_that_are_not_up_come_last() {
        let order = |start| round_robin(&['a', 'b', 'c', 'd'], start, |member| *member != 'b');

        assert_eq!(order(0), ['a', 'c', 'd', 'b']);
        assert_eq!(order(1), ['c', 'd', 'a', 'b']);
        assert_eq!(order(2), ['c', 'd', 'a', 'b']);
        assert_eq!(order(usize::MAX), ['d', 'a', 'c', 'b']);
        assert_eq!(round_robin(&[0_u8; 0], 1, |_| true), [0_u8; 0]);
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
