//! The metrics of a process, as a scraper reads them.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    net::SocketAddr,
    process::{Command, Stdio},
    time::Duration,
};

use crate::{eventually, health, prerequisites};

/// Far longer than a gateway takes to check its cores.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// The metrics that a process exposes at one time.
pub(crate) struct Exposition {
    pub(crate) text: String,
    samples: Vec<Sample>,
}

struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// What a metric is: its type, and the labels of its series.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Family {
    pub(crate) kind: String,
    pub(crate) labels: BTreeSet<String>,
}

impl Exposition {
    pub(crate) async fn scrape(addr: SocketAddr) -> Self {
        let (status, text) = health::get(addr, "/metrics").await;
        assert_eq!(status, "200");
        assert!(text.ends_with("# EOF\n"), "{text}");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self {
            samples: lines.map(parse).collect(),
            text,
        }
    }

    /// The value of the series with exactly these labels.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let wanted: BTreeMap<_, _> = labels
            .iter()
            .map(|(label, value)| ((*label).to_owned(), (*value).to_owned()))
            .collect();
        let mut samples = self.samples.iter();
        samples
            .find(|sample| sample.name == name && sample.labels == wanted)
            .map(|sample| sample.value)
    }

    /// The number of series, without those of statements: background tasks add them at any time, one
    /// for each documented operation.
    pub(crate) fn series(&self) -> usize {
        let samples = self.samples.iter();
        samples
            .filter(|sample| !sample.name.starts_with("db_client_operation_duration"))
            .count()
    }

    /// Every value of every label.
    pub(crate) fn label_values(&self) -> BTreeSet<&str> {
        let labels = self
            .samples
            .iter()
            .flat_map(|sample| sample.labels.values());
        labels.map(String::as_str).collect()
    }

    /// The metrics by the names that they have in queries.
    pub(crate) fn families(&self) -> BTreeMap<String, Family> {
        let kinds = self.text.lines().filter_map(|line| {
            let (name, kind) = line.strip_prefix("# TYPE ")?.split_once(' ')?;
            Some((name, kind))
        });
        let mut families = BTreeMap::new();
        for (name, kind) in kinds {
            let is_of = |sample: &&Sample| match kind {
                "histogram" => sample.name == format!("{name}_bucket"),
                "counter" => sample.name == format!("{name}_total"),
                _ => sample.name == name,
            };
            let labels = self.samples.iter().filter(is_of);
            let labels = labels.flat_map(|sample| sample.labels.keys().cloned());
            let family = Family {
                kind: kind.to_owned(),
                labels: labels.filter(|label| label != "le").collect(),
            };
            let suffix = if kind == "counter" { "_total" } else { "" };
            let is_new = families.insert(format!("{name}{suffix}"), family).is_none();
            assert!(is_new, "{name} is exposed twice");
        }
        families
    }

    /// Fails on every problem that Prometheus' own checker finds. It reads the older text format, in
    /// which a counter's type has the name of its samples.
    pub(crate) fn check(&self) {
        let lines = self.text.lines().map(|line| {
            let counter = line
                .strip_prefix("# TYPE ")
                .and_then(|rest| rest.strip_suffix(" counter"));
            let help = line.strip_prefix("# HELP ").and_then(|rest| {
                let (name, help) = rest.split_once(' ')?;
                let is_counter = self.text.contains(&format!("# TYPE {name} counter\n"));
                is_counter.then(|| format!("# HELP {name}_total {help}\n"))
            });
            match (counter, help) {
                (Some(name), _) => format!("# TYPE {name}_total counter\n"),
                (None, Some(help)) => help,
                (None, None) => format!("{line}\n"),
            }
        });
        let text: String = lines.collect();
        let checker = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut checker) = checker else {
            prerequisites::skip("promtool check metrics", "promtool is not installed");
            return;
        };
        let mut input = checker.stdin.take().unwrap();
        let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
        let output = checker.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        let found =
            String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap();
        let problems: Vec<_> = found
            .lines()
            // This name is given by OpenTelemetry's conventions.
            .filter(|line| !line.starts_with("db_client_connection_count non-histogram"))
            .collect();
        assert_eq!(problems, [""; 0]);
    }
}

fn parse(line: &str) -> Sample {
    let (series, value) = line.rsplit_once(' ').unwrap();
    let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
    let labels = labels.strip_suffix('}').unwrap();
    let labels = labels.split("\",").filter(|label| !label.is_empty());
    let label = |label: &str| {
        let (name, value) = label.split_once("=\"").unwrap();
        (name.to_owned(), value.trim_end_matches('"').to_owned())
    };
    Sample {
        name: name.to_owned(),
        labels: labels.map(label).collect(),
        value: value.parse().unwrap(),
    }
}

/// Waits until both gateways, of which these are the health listeners, know that both cores are ready.
/// If a core were stopped before, they might know of none.
pub(crate) async fn wait_until_cores_are_up(gateways: [SocketAddr; 2]) {
    for addr in gateways {
        eventually(
            CHECK_TIMEOUT,
            "a gateway does not find both cores",
            async || {
                let scraped = Exposition::scrape(addr).await;
                let up = scraped.value("delivery_gateway_cores", &[("state", "up")]);
                (up == Some(2.0)).then_some(())
            },
        )
        .await;
    }
}
