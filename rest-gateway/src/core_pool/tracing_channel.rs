//! The spans of calls to cores, and the headers that continue them in core.

use core_client::Channel;
use process::traces::{self, KeyValue, TraceSpan};
use tonic::{
    Code, GrpcMethod, Request, Response, Status,
    service::{Interceptor, interceptor::InterceptedService},
};

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

fn code_name(code: Code) -> &'static str {
    let name = proto::CODE_NAMES.get(code as usize);
    name.copied().unwrap_or("UNKNOWN")
}

/// Ends a span with the result of its call; `None` if it was abandoned because the core went down.
pub(super) fn end<T>(span: TraceSpan, result: Option<&Result<Response<T>, Status>>) {
    let code = match result {
        Some(Ok(_)) => Code::Ok,
        Some(Err(status)) => status.code(),
        None => Code::Unavailable,
    };
    span.set(|| [KeyValue::new("rpc.response.status_code", code_name(code))]);
    if code != Code::Ok {
        span.set_failed();
    }
    span.end();
}
