//! The settings of traces.

use clap::Args;
use url::Url;

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

#[cfg(test)]
mod tests {
    use super::*;

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
