//! Samples of a long run, one line of a CSV file each, and what must not grow.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::server::Server;

/// The samples so far, by column.
pub(crate) struct Samples {
    path: PathBuf,
    file: File,
    columns: Vec<(String, Vec<u64>)>,
}

/// The ends of the names of columns that are limited, and how.
const LIMITS: [(&str, Limit); 5] = [
    (" rss KiB", MEMORY),
    (" descriptors", DESCRIPTORS_AND_THREADS),
    (" threads", DESCRIPTORS_AND_THREADS),
    (" rows", ROWS),
    (" bytes", BYTES),
];

/// How a column is limited: a statistic of the last quarter of the samples may exceed that of the
/// second quarter by a percentage and an allowance. The first quarter warms up.
#[derive(Clone, Copy, Debug)]
struct Limit {
    statistic: fn(&[u64]) -> u64,
    percent: u64,
    allowance: u64,
}

/// KiB. What is cached, and what an outage leaves in the allocator, fits into this.
const MEMORY: Limit = Limit {
    statistic: median,
    percent: 20,
    allowance: 8 * 1024,
};

/// An outage opens and closes some for a while, so that the maximum varies and the median does not.
const DESCRIPTORS_AND_THREADS: Limit = Limit {
    statistic: median,
    percent: 0,
    allowance: 8,
};

/// A table grows until retention removes its oldest rows at once. Without retention it doubles.
const ROWS: Limit = Limit {
    statistic: maximum,
    percent: 50,
    allowance: 200,
};

const BYTES: Limit = Limit {
    statistic: maximum,
    percent: 50,
    allowance: 2 * 1024 * 1024,
};

impl Samples {
    /// Writes to a file in cargo's folder for the files of tests.
    pub(crate) fn create(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        Self {
            file: File::create(&path).unwrap(),
            path,
            columns: Vec::new(),
        }
    }

    /// Adds a sample and the faults since the last one. All have the same columns.
    pub(crate) fn add(&mut self, elapsed: Duration, sample: Vec<(String, u64)>, faults: &str) {
        if self.columns.is_empty() {
            let names: Vec<_> = sample.iter().map(|(name, _)| name.as_str()).collect();
            writeln!(self.file, "seconds,{},faults", names.join(",")).unwrap();
            self.columns = sample
                .iter()
                .map(|(name, _)| (name.clone(), Vec::new()))
                .collect();
        }
        assert_eq!(self.columns.len(), sample.len());
        let values: Vec<_> = sample.iter().map(|(_, value)| value.to_string()).collect();
        let seconds = elapsed.as_secs_f64();
        writeln!(self.file, "{seconds:.1},{},{faults}", values.join(",")).unwrap();
        for ((name, column), (sampled, value)) in self.columns.iter_mut().zip(sample) {
            assert_eq!(*name, sampled);
            column.push(value);
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The columns that end in one of these and are zero in every sample.
    pub(crate) fn unseen(&self, endings: &[&str]) -> Vec<&str> {
        let columns = self.columns.iter();
        columns
            .filter(|(name, _)| endings.iter().any(|ending| name.ends_with(ending)))
            .filter(|(_, values)| values.iter().all(|value| *value == 0))
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// Which of these columns grew that must not, or do not exist, in words.
    pub(crate) fn growth(&self, columns: &[String]) -> Vec<String> {
        let grown = columns.iter().filter_map(|name| {
            let mut columns = self.columns.iter();
            let Some((_, values)) = columns.find(|(column, _)| column == name) else {
                return Some(format!("there is no column {name:?}"));
            };
            let mut limits = LIMITS.iter();
            let limit = limits.find_map(|(end, limit)| name.ends_with(end).then_some(limit));
            let limit = limit.unwrap_or_else(|| panic!("{name:?} has no limit"));
            let [before, after] = limit.compare(values);
            let is_permitted = limit.permits(before, after);
            (!is_permitted).then(|| format!("{name}: {before} → {after}"))
        });
        grown.collect()
    }
}

impl Limit {
    /// The statistic of the second quarter and of the last.
    fn compare(self, values: &[u64]) -> [u64; 2] {
        let quarter = (values.len() / 4).max(1);
        let quarters = [
            &values[quarter..2 * quarter],
            &values[values.len() - quarter..],
        ];
        quarters.map(self.statistic)
    }

    fn permits(self, before: u64, after: u64) -> bool {
        after <= before + before * self.percent / 100 + self.allowance
    }
}

fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

fn maximum(values: &[u64]) -> u64 {
    values.iter().copied().max().unwrap()
}

/// Resident memory in KiB, open descriptors and threads of a process.
pub(crate) fn process(server: &Server) -> [(String, u64); 3] {
    let name = server.name();
    let descriptors = fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap();
    [
        (format!("{name} rss KiB"), server.status("VmRSS:")),
        (
            format!("{name} descriptors"),
            u64::try_from(descriptors.count()).unwrap(),
        ),
        (format!("{name} threads"), server.status("Threads:")),
    ]
}

/// The growth found in an hour of samples of one column, 5 s apart, given its value by the minute.
fn growth_of(column: &str, value: impl Fn(u64) -> u64) -> Vec<String> {
    let mut samples = Samples::create(&format!("{}.csv", uuid::Uuid::now_v7()));
    for number in 0..720 {
        let sample = vec![(column.to_owned(), value(number / 12))];
        samples.add(Duration::from_secs(number * 5), sample, "");
    }
    fs::remove_file(samples.path()).unwrap();
    samples.growth(&[column.to_owned()])
}

#[test]
fn a_column_that_does_not_exist_is_noticed() {
    let mut samples = Samples::create(&format!("{}.csv", uuid::Uuid::now_v7()));
    fs::remove_file(samples.path()).unwrap();
    samples.add(Duration::ZERO, vec![("core rss KiB".to_owned(), 1)], "");
    let growth = samples.growth(&["core rss".to_owned()]);
    assert_eq!(growth, ["there is no column \"core rss\""]);
}

#[test]
fn memory_that_grows_by_a_megabyte_a_minute_is_noticed() {
    let growth = growth_of("core rss KiB", |minute| 60_000 + 1024 * minute);
    assert_eq!(growth, ["core rss KiB: 82528 → 113248"]);
}

#[test]
fn memory_that_grows_while_a_process_warms_up_is_not_noticed() {
    let growth = growth_of("core rss KiB", |minute| 20_000 + 8192 * minute.min(12));
    assert_eq!(growth, [""; 0]);
}

#[test]
fn a_descriptor_leaked_each_three_minutes_is_noticed() {
    let growth = growth_of("core descriptors", |minute| 40 + minute / 3);
    assert_eq!(growth, ["core descriptors: 47 → 57"]);
}

#[test]
fn descriptors_that_an_outage_opens_for_a_minute_are_not_noticed() {
    let outage = |minute| if minute == 50 { 90 } else { 0 };
    let growth = growth_of("core descriptors", |minute| 40 + outage(minute));
    assert_eq!(growth, [""; 0]);
}

#[test]
fn a_thread_leaked_each_three_minutes_is_noticed() {
    let growth = growth_of("core threads", |minute| 9 + minute / 3);
    assert_eq!(growth, ["core threads: 16 → 26"]);
}

#[test]
fn a_table_from_which_nothing_is_removed_is_noticed() {
    let growth = growth_of("events rows", |minute| 400 * minute);
    assert_eq!(growth, ["events rows: 11600 → 23600"]);
    let growth = growth_of("events bytes", |minute| 400_000 * minute);
    assert_eq!(growth, ["events bytes: 11600000 → 23600000"]);
}

#[test]
fn a_table_whose_old_rows_are_removed_every_twenty_minutes_is_not_noticed() {
    let growth = growth_of("events rows", |minute| 400 * (minute % 20));
    assert_eq!(growth, [""; 0]);
}
