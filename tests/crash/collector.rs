//! An OTLP collector on loopback, which keeps the spans that it receives, or never answers.

use std::{collections::BTreeMap, fmt::Write as _, net::SocketAddr, time::Duration};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::{KeyValue, any_value::Value},
    trace::v1,
};
use tokio::{net::TcpListener, sync::watch};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, transport::Server};

/// Far longer than spans wait for their export.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A span, with ids in hexadecimal.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    /// The program.
    pub(crate) service: String,
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) name: String,
    pub(crate) kind: v1::span::SpanKind,
    pub(crate) attributes: BTreeMap<String, String>,
}

/// A running collector. It stops when the test ends.
pub(crate) struct Collector {
    addr: SocketAddr,
    exports: watch::Receiver<Vec<ExportTraceServiceRequest>>,
}

struct Service {
    exports: watch::Sender<Vec<ExportTraceServiceRequest>>,
    answers: bool,
}

#[tonic::async_trait]
impl TraceService for Service {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.exports
            .send_modify(|exports| exports.push(request.into_inner()));
        if !self.answers {
            std::future::pending::<()>().await;
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    pub(crate) async fn start() -> Self {
        Self::start_with(true).await
    }

    /// Starts one that receives exports and never answers.
    pub(crate) async fn start_hanging() -> Self {
        Self::start_with(false).await
    }

    async fn start_with(answers: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (sender, exports) = watch::channel(Vec::new());
        let service = TraceServiceServer::new(Service {
            exports: sender,
            answers,
        });
        let server = Server::builder().add_service(service);
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        Self { addr, exports }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The flag that makes a program export to it.
    pub(crate) fn flag(&self) -> String {
        format!("--otlp-endpoint={}", self.url())
    }

    pub(crate) fn exports(&self) -> Vec<ExportTraceServiceRequest> {
        self.exports.borrow().clone()
    }

    pub(crate) async fn wait_for_export(&self) {
        let mut exports = self.exports.clone();
        let received = exports.wait_for(|exports| !exports.is_empty());
        let received = tokio::time::timeout(TIMEOUT, received).await;
        assert!(received.is_ok(), "nothing is exported");
    }

    /// Waits until the spans of a trace meet a condition, and returns them.
    pub(crate) async fn wait_for(
        &self,
        trace: &str,
        is_complete: impl Fn(&[Span]) -> bool,
    ) -> Vec<Span> {
        let spans_of = |exports: &[ExportTraceServiceRequest]| -> Vec<_> {
            let spans = spans(exports).into_iter();
            spans.filter(|span| span.trace == trace).collect()
        };
        let mut exports = self.exports.clone();
        let complete = exports.wait_for(|exports| is_complete(&spans_of(exports)));
        let is_complete = tokio::time::timeout(TIMEOUT, complete).await.is_ok();
        let spans = spans_of(&self.exports());
        assert!(is_complete, "incomplete: {spans:#?}");
        spans
    }
}

fn spans(exports: &[ExportTraceServiceRequest]) -> Vec<Span> {
    let resources = exports.iter().flat_map(|export| &export.resource_spans);
    resources
        .flat_map(|resource| {
            let attributes = resource.resource.iter().flat_map(|found| &found.attributes);
            let service = texts(attributes).remove("service.name").unwrap();
            let scopes = resource.scope_spans.iter();
            scopes.flat_map(|scope| &scope.spans).map(move |span| Span {
                service: service.clone(),
                trace: hex(&span.trace_id),
                id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                name: span.name.clone(),
                kind: span.kind(),
                attributes: texts(&span.attributes),
            })
        })
        .collect()
}

fn texts<'a>(attributes: impl IntoIterator<Item = &'a KeyValue>) -> BTreeMap<String, String> {
    let text = |attribute: &KeyValue| match attribute.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        other => Some(format!("{other:?}")),
    };
    attributes
        .into_iter()
        .map(|attribute| (attribute.key.clone(), text(attribute).unwrap_or_default()))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}
