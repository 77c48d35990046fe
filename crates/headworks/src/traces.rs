//! Traces: a span for each decision of a request whose trace is recorded, sent to a receiver of OpenTelemetry.
//!
//! Whether a trace is recorded was decided where it began, and the request says so. So there is nothing to sample here, and
//! whoever asks without a trace pays for none.

use std::time::Duration;

use axum::http::{HeaderMap, Uri};
use headworks_core::limits::Limit;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{Span as _, SpanKind, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};

use crate::failure::Failure;

/// Longest that spans of the last moment may take to be sent.
const FAREWELL: Duration = Duration::from_secs(1);

/// How spans get to another machine over TLS.
pub(crate) const COLLECTOR: &str = "run a collector of OpenTelemetry on this host, which sends them on over TLS, and give \
                                    http://127.0.0.1:4317";

/// Where spans go.
#[derive(Clone, Debug)]
pub(crate) struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

/// A decision under way.
pub(crate) struct Decision(Span);

impl Traces {
    /// To the receiver at this URL, which may be away: spans that find no room are dropped, and nobody waits. Must be called
    /// within a runtime.
    pub(crate) fn to(url: &str, node: &str, zone: &str) -> Result<Self, Failure> {
        let exporter = SpanExporter::builder().with_tonic().with_endpoint(url).build();
        let exporter = exporter.map_err(|error| Failure::Usage(format!("agent --traces {url}: {error}")))?;
        let resource = Resource::builder()
            .with_service_name("headworks-agent")
            .with_attribute(KeyValue::new("service.instance.id", node.to_owned()))
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .with_attribute(KeyValue::new("headworks.zone", zone.to_owned()))
            .build();
        let provider =
            SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
        Ok(Self { tracer: provider.tracer("headworks"), provider })
    }

    /// Begins a span under that of the request, if its trace is recorded.
    pub(crate) fn begin(&self, headers: &HeaderMap) -> Option<Decision> {
        let asked = TraceContextPropagator::new().extract_with_context(&Context::new(), &Headers(headers));
        asked.span().span_context().is_sampled().then(|| {
            let span = self.tracer.span_builder("allow").with_kind(SpanKind::Server);
            Decision(span.start_with_context(&self.tracer, &asked))
        })
    }

    /// Sends what has not been sent, and no more after that.
    pub(crate) fn end(&self) {
        if let Err(error) = self.provider.shutdown_with_timeout(FAREWELL) {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
}

impl Decision {
    /// Ends the span with what was decided. No value of the request is told, since callers are named there.
    pub(crate) fn end(mut self, allowed: bool, limit: Option<&Limit>) {
        self.0.set_attribute(KeyValue::new("headworks.allowed", allowed));
        if let Some(limit) = limit {
            self.0.set_attribute(KeyValue::new("headworks.limit", limit.name.to_string()));
        }
        self.0.end();
    }
}

/// Headers, for those who look for a trace in them.
struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(axum::http::HeaderName::as_str).collect()
    }
}

/// The URL of a receiver, in plain text.
pub(crate) fn receiver_url(text: &str) -> Result<String, String> {
    let uri: Option<Uri> = text.trim().parse().ok();
    if uri.as_ref().is_some_and(|uri| uri.scheme_str() == Some("https")) {
        return Err(format!("spans are sent in plain text; {COLLECTOR}"));
    }
    let is_sound = uri.is_some_and(|uri| {
        uri.scheme_str() == Some("http") && uri.port_u16().is_some() && !text.contains('@')
    });
    is_sound.then(|| text.trim().to_owned()).ok_or_else(|| "write it as http://host:port".to_owned())
}
