//! The packages, targets and profiles that the documents' `cargo` commands name exist, and `cargo run` knows
//! which program to run. `.ci/run` runs the commands themselves.

use std::{collections::BTreeSet, process::Command};

use serde_json::Value;

use super::commands::{pages, read};
use crate::program;

fn metadata() -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "metadata",
        "--locked",
        "--offline",
        "--no-deps",
        "--format-version=1",
    ]);
    let output = program::output(cargo.current_dir(env!("CARGO_MANIFEST_DIR")));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn texts<'a>(values: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    let values = values.as_array().unwrap().iter();
    let field = field.to_owned();
    values.filter_map(move |value| value[&field].as_str())
}

#[test]
fn cargo_run_knows_which_program_to_run() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let default_members = metadata["workspace_default_members"].as_array().unwrap();

    let default_runs: Vec<_> = packages
        .filter(|package| default_members.contains(&package["id"]))
        .filter_map(|package| package["default_run"].as_str())
        .collect();

    assert_eq!(default_runs, ["delivery"]);
}

#[test]
fn the_packages_targets_and_profiles_of_cargo_commands_exist() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let of_kind = |kind: &str| -> BTreeSet<&str> {
        let targets = packages
            .iter()
            .flat_map(|package| package["targets"].as_array().unwrap());
        let of_kind = targets.filter(|target| target["kind"][0] == kind);
        of_kind
            .filter_map(|target| target["name"].as_str())
            .collect()
    };
    let manifest = include_str!("../../../Cargo.toml").lines();
    let profile = |line: &'static str| line.strip_prefix("[profile.")?.strip_suffix(']');
    let profiles = manifest.filter_map(profile).collect();
    let names = [
        (
            &["-p", "--package"][..],
            texts(&metadata["packages"], "name").collect(),
        ),
        (&["--bench"], of_kind("bench")),
        (&["--test"], of_kind("test")),
        (&["--example"], of_kind("example")),
        (&["--bin"], of_kind("bin")),
        (&["--profile"], profiles),
    ];
    let mut wrong = Vec::new();
    let mut count = 0;

    for page in pages() {
        let text = read(&page);
        let commands = text.split(['`', '\n']).filter_map(|line| {
            let (_, arguments) = line.split_once("cargo ")?;
            let arguments = arguments.split(" -- ").next()?;
            let command = arguments.split_whitespace().next()?;
            ["run", "test", "bench", "build"]
                .contains(&command)
                .then_some(arguments)
        });
        for command in commands {
            count += 1;
            let words: Vec<_> = command.split_whitespace().collect();
            for words in words.windows(2) {
                let known = names.iter().find(|(flags, _)| flags.contains(&words[0]));
                if known.is_some_and(|(_, names)| !names.contains(words[1])) {
                    wrong.push(format!("{page}: `cargo {command}`: {}", words[1]));
                }
            }
        }
    }

    assert_eq!(wrong, [""; 0]);
    assert!(count > 15, "{count}");
}
