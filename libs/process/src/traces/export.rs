//! The settings of traces, and the export of spans in batches, from a bounded queue: a collector that is slow or
//! absent costs spans, which are counted, and delays no request.

use std::{sync::LazyLock, time::Duration};

use anyhow::{Context as _, ensure};
use clap::Args;
use opentelemetry::{Context, KeyValue, trace::TracerProvider as _};
use opentelemetry_otlp::{WithExportConfig as _, WithTonicConfig as _};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{Sampler, SdkTracerProvider, Span, SpanData, SpanExporter, SpanProcessor},
};
use prometheus_client::registry::Registry;
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tonic::transport::{ClientTlsConfig, Endpoint};
use url::Url;

use super::TRACER;
use crate::{metrics::Counters, random};

/// Some megabytes of spans.
const QUEUE_CAPACITY: usize = 8192;
const MAX_BATCH: usize = 512;
/// How long spans wait for others of their batch.
const BATCH_DELAY: Duration = Duration::from_millis(200);
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
const KEEPALIVE: Duration = Duration::from_secs(10);
/// Limit for exporting the last spans at shutdown.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

static LOST: LazyLock<Counters> =
    LazyLock::new(|| Counters::new("reason", &["queue_full", "export", "shutdown"]));

/// Settings of traces.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct TraceConfig {
    /// URL of the collector that receives traces, by OTLP over gRPC. Default: none, nothing is
    /// exported. Example: `http://127.0.0.1:4317`
    #[arg(long, env = "DELIVERY_OTLP_ENDPOINT", value_name = "URL")]
    #[arg(value_parser = endpoint)]
    pub otlp_endpoint: Option<Url>,

    /// Share of the traces that is exported, from 0 to 1: of those that begin here and, in a gateway,
    /// of those that a client's `traceparent` samples. Example: `0.1`
    #[arg(long, env = "DELIVERY_TRACE_SAMPLING", value_name = "RATIO")]
    #[arg(default_value = "1", value_parser = ratio)]
    pub trace_sampling: f64,
}

/// Registers the metrics of traces.
pub fn register_metrics(registry: &mut Registry) {
    registry.register(
        "delivery_trace_spans_lost",
        "Spans that the collector did not get",
        LOST.family.clone(),
    );
}

/// The export of a process's spans, if there is one, and what stops it.
pub struct Traces(Option<(CancellationToken, AbortOnDropHandle<()>)>);

/// Starts the export if an endpoint is configured. Must be called in the runtime, once.
pub fn start(config: &TraceConfig, program: &'static str) -> anyhow::Result<Traces> {
    let Some(url) = &config.otlp_endpoint else {
        return Ok(Traces(None));
    };
    let mut exporter = exporter(url).context("cannot export traces")?;
    let resource = Resource::builder_empty()
        .with_service_name(program)
        .with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", random::token::<12>()),
        ])
        .build();
    exporter.set_resource(&resource);
    let (spans, queue) = mpsc::channel(QUEUE_CAPACITY);
    let sampler = Sampler::TraceIdRatioBased(config.trace_sampling);
    let provider = SdkTracerProvider::builder()
        .with_sampler(Sampler::ParentBased(Box::new(sampler)))
        .with_resource(resource)
        .with_span_processor(Queue(spans))
        .build();
    let is_first = TRACER
        .set((provider.tracer("delivery"), config.trace_sampling))
        .is_ok();
    ensure!(is_first, "traces are exported already");
    let stop = CancellationToken::new();
    let export = tokio::spawn(export(queue, exporter, stop.clone()));
    tracing::info!(endpoint = %url, sampling = config.trace_sampling, "exporting traces");
    Ok(Traces(Some((stop, AbortOnDropHandle::new(export)))))
}

impl Traces {
    /// Exports what is left, within two seconds.
    pub async fn stop(self) {
        let Some((stop, export)) = self.0 else {
            return;
        };
        stop.cancel();
        if timeout(STOP_TIMEOUT, export).await.is_err() {
            tracing::warn!("the last spans were not exported within {STOP_TIMEOUT:?}");
        }
    }
}

/// Parses a URL without credentials: every user of the machine can read the command line.
fn endpoint(text: &str) -> Result<Url, String> {
    let url = Url::parse(text.trim()).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.path() == "/"
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    });
    url.ok_or_else(|| {
        "not an http or https URL without credentials and path, such as http://127.0.0.1:4317"
            .to_owned()
    })
}

fn ratio(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim().parse().ok();
    number
        .filter(|number| (0.0..=1.0).contains(number))
        .ok_or_else(|| "not a number from 0 to 1, such as 0.1".to_owned())
}

/// Connects when it exports.
fn exporter(url: &Url) -> anyhow::Result<opentelemetry_otlp::SpanExporter> {
    let mut endpoint = Endpoint::from_shared(url.to_string())?
        .connect_timeout(EXPORT_TIMEOUT)
        // A collector that vanished is otherwise noticed when TCP gives up, after 15 minutes.
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(EXPORT_TIMEOUT);
    if url.scheme() == "https" {
        endpoint = endpoint.tls_config(ClientTlsConfig::new().with_native_roots())?;
    }
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .with_channel(endpoint.connect_lazy())
        .with_timeout(EXPORT_TIMEOUT);
    Ok(exporter.build()?)
}

/// Takes spans as they end.
#[derive(Debug)]
struct Queue(mpsc::Sender<SpanData>);

impl SpanProcessor for Queue {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        match self.0.try_send(span) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => LOST.inc("queue_full"),
            Err(TrySendError::Closed(_)) => LOST.inc("shutdown"),
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Exports batches until `stop`, then what is left.
async fn export(
    mut queue: mpsc::Receiver<SpanData>,
    exporter: impl SpanExporter,
    stop: CancellationToken,
) {
    let mut is_failing = false;
    while let Some(Some(first)) = stop.run_until_cancelled(queue.recv()).await {
        if queue.len() < MAX_BATCH {
            stop.run_until_cancelled(sleep(BATCH_DELAY)).await;
        }
        export_batch(first, &mut queue, &exporter, &mut is_failing).await;
    }
    queue.close();
    while let Ok(first) = queue.try_recv() {
        export_batch(first, &mut queue, &exporter, &mut is_failing).await;
    }
}

/// Exports a span and what is queued after it. A failure is logged when it begins and when it ends.
async fn export_batch(
    first: SpanData,
    queue: &mut mpsc::Receiver<SpanData>,
    exporter: &impl SpanExporter,
    is_failing: &mut bool,
) {
    let mut batch = vec![first];
    while batch.len() < MAX_BATCH
        && let Ok(span) = queue.try_recv()
    {
        batch.push(span);
    }
    let count = batch.len();
    let result = match timeout(EXPORT_TIMEOUT, exporter.export(batch)).await {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no response within {EXPORT_TIMEOUT:?}")),
    };
    match result {
        Ok(()) if *is_failing => tracing::info!("traces are exported again"),
        Ok(()) => {}
        Err(error) => {
            LOST.add("export", u64::try_from(count).unwrap_or(u64::MAX));
            if !*is_failing {
                tracing::warn!(error, "traces cannot be exported; spans are lost");
            }
            *is_failing = true;
            return;
        }
    }
    *is_failing = false;
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::Tracer as _;

    use super::*;
    use crate::metrics::Exposition;

    #[tokio::test]
    async fn a_full_queue_drops_spans_and_counts_them() {
        let (spans, mut queue) = mpsc::channel(2);
        let provider = SdkTracerProvider::builder()
            .with_span_processor(Queue(spans))
            .build();
        let tracer = provider.tracer("test");
        for _ in 0..5 {
            drop(tracer.start("span"));
        }

        let mut kept = Vec::new();
        assert_eq!(queue.recv_many(&mut kept, 5).await, 2);
        let text = Exposition::new().render().await;
        let lost = "delivery_trace_spans_lost_total{reason=\"queue_full\"} 3";
        assert!(text.lines().any(|line| line == lost), "{text}");
    }

    #[test]
    fn an_endpoint_is_a_url_of_a_host_and_a_ratio_is_at_most_one() {
        for right in ["http://127.0.0.1:4317", "https://collector.example/"] {
            assert!(endpoint(right).is_ok(), "{right}");
        }
        for wrong in [
            "",
            "127.0.0.1:4317",
            "grpc://127.0.0.1:4317",
            "http://user@host:4317",
            "http://:secret@host:4317",
            "http://host:4317/v1/traces",
            "http://host:4317?key=secret",
        ] {
            assert!(endpoint(wrong).is_err(), "{wrong}");
        }
        assert_eq!((ratio("0"), ratio(" 0.25 ")), (Ok(0.0), Ok(0.25)));
        for wrong in ["", "1.01", "-0.1", "NaN", "inf", "10%"] {
            assert!(ratio(wrong).is_err(), "{wrong}");
        }
    }
}
