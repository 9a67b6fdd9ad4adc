//! Reads the report of the doctor.

use std::{path::Path, process::Output};

use serde_json::Value;

use crate::harness::all_in_one::{run_delivery, stderr};

/// The report of `delivery doctor --json`, whose exit status agrees with it.
pub(super) struct Report(pub(super) Value);

impl Report {
    pub(super) fn of(data_dir: &Path, arguments: &[&str]) -> Self {
        let arguments = [&["doctor", "--json"], arguments].concat();
        Self::read(&run_delivery(data_dir, &arguments))
    }

    pub(super) fn read(output: &Output) -> Self {
        let report = serde_json::from_slice(&output.stdout);
        let report: Value = report.unwrap_or_else(|_| panic!("{}", stderr(output)));
        let count = report["checks"].as_array().unwrap().len();
        match report["failures"].as_u64().unwrap() {
            0 => {
                assert_eq!(output.status.code(), Some(0), "{report:#}");
                assert_eq!(stderr(output), "");
            }
            failures => {
                assert_eq!(output.status.code(), Some(1), "{report:#}");
                let expected = format!("{failures} of {count} checks failed\n");
                assert_eq!(stderr(output), expected);
            }
        }
        Self(report)
    }

    pub(super) fn check(&self, name: &str) -> &Value {
        let checks = self.0["checks"].as_array().unwrap();
        let found = checks.iter().find(|check| check["name"] == name);
        found.unwrap_or_else(|| panic!("{name}: {:#}", self.0))
    }

    /// Name and status of each check.
    pub(super) fn statuses(&self) -> Vec<(&str, &str)> {
        let checks = self.0["checks"].as_array().unwrap().iter();
        let statuses = checks.map(|check| {
            let text = |member: &str| check[member].as_str().unwrap();
            (text("name"), text("status"))
        });
        statuses.collect()
    }

    #[track_caller]
    pub(super) fn assert(&self, name: &str, status: &str, found: &str) {
        let check = self.check(name);
        assert_eq!(check["status"], status, "{check}");
        let text = check["found"].as_str().unwrap();
        assert!(text.contains(found), "{check}");
    }
}
