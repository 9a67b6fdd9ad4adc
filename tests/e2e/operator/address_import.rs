//! `delivery addresses import`: interrupted by a kill of the platform or of the command; progress.

use std::{
    fmt::Write as _,
    fs::{self, File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::harness::all_in_one::{AllInOne, command, run_delivery_json, stderr};

const HEADER: &str = "numero;rep;nom_voie;code_postal;nom_commune;lon;lat\n";
/// In the demo gazetteer.
const OLD: &str = "24 Rue de la Paix, 75002 Paris";
/// Only in the imported file.
const NEW: &str = "7 Rue de Gand, 59000 Lille";
/// Generous upper bound for waiting.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A CSV of 40,000 houses of one street in Lille, larger than one megabyte.
fn lille_csv() -> String {
    let mut csv = String::from(HEADER);
    for house in 1..=40_000 {
        let longitude = 3.0 + f64::from(house) / 1e6;
        writeln!(csv, "{house};;Rue de Gand;59000;Lille;{longitude};50.6").unwrap();
    }
    csv
}

/// An import in progress: it has read a megabyte and waits for more input.
struct ImportInProgress {
    command: Child,
    /// The open end of the pipe; dropping it ends the input.
    input: File,
}

impl ImportInProgress {
    fn start(data_dir: &Path) -> Self {
        let pipe = data_dir.join("lille.csv");
        if !pipe.exists() {
            let mkfifo = Command::new("mkfifo").arg(&pipe).status().unwrap();
            assert!(mkfifo.success());
        }
        let command = command()
            .args(["addresses", "import"])
            .arg(&pipe)
            .arg("--data-dir")
            .arg(data_dir)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = OpenOptions::new().write(true).open(&pipe).unwrap();
        input.write_all(lille_csv().as_bytes()).unwrap();
        wait_until(|| new_index(data_dir).exists());
        Self { command, input }
    }
}

/// The file of the new index, before it replaces the current one.
fn new_index(data_dir: &Path) -> PathBuf {
    data_dir.join("addresses.sqlite.new")
}

fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < TIMEOUT);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The coordinates of an address, or null if it is unknown.
fn geo(running: &AllInOne, address: &str) -> Value {
    let draft = json!({ "dropoff": { "address": address, "before": "tomorrow 13:00" } });
    let created = running.call("/api/deliveries", &["-d", &draft.to_string()]);
    created["dropoff"]["address"]["geo"].clone()
}

fn import_all(data_dir: &Path) {
    let file = data_dir.join("complete.csv");
    fs::write(&file, lille_csv()).unwrap();
    let imported = run_delivery_json(data_dir, &["addresses", "import", file.to_str().unwrap()]);
    assert_eq!(imported, json!({ "imported": 40_000, "skipped": [] }));
}

#[test]
fn a_platform_killed_during_an_import_keeps_its_old_addresses_and_can_import_again() {
    let data_dir = tempfile::tempdir().unwrap();
    let data_dir = data_dir.path();
    let running = AllInOne::start(data_dir, &[]);
    let old = geo(&running, OLD);
    assert!(old.is_object());

    let ImportInProgress { command, input } = ImportInProgress::start(data_dir);
    assert_eq!(geo(&running, OLD)["latitude"], old["latitude"]);
    assert_eq!(geo(&running, NEW), Value::Null);
    running.stop("-KILL");
    assert!(new_index(data_dir).exists());
    drop(input);
    let output = command.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));

    let running = AllInOne::start(data_dir, &[]);
    assert_eq!(geo(&running, OLD)["latitude"], old["latitude"]);
    assert_eq!(geo(&running, NEW), Value::Null);
    import_all(data_dir);
    assert!(geo(&running, NEW).is_object());
    assert_eq!(geo(&running, OLD), Value::Null);
    assert!(!new_index(data_dir).exists());
}

#[test]
fn an_import_command_killed_midway_changes_nothing_and_does_not_block_the_next() {
    let running = AllInOne::start_new(&[]);
    let data_dir = running.data_dir();

    let ImportInProgress { mut command, input } = ImportInProgress::start(data_dir);
    let file = data_dir.join("another.csv");
    fs::write(&file, format!("{HEADER}1;;Rue X;59000;Lille;3;50\n")).unwrap();
    let second = running.run(&["addresses", "import", file.to_str().unwrap()]);
    assert_eq!(second.status.code(), Some(1));
    assert_eq!(stderr(&second), "another import is in progress\n");
    command.kill().unwrap();
    command.wait().unwrap();
    drop(input);
    wait_until(|| !new_index(data_dir).exists());

    assert!(geo(&running, OLD).is_object());
    assert_eq!(geo(&running, NEW), Value::Null);
    import_all(data_dir);
    assert!(geo(&running, NEW).is_object());
}

#[test]
fn an_import_shows_its_progress_on_a_terminal() {
    const RUN_IN_PTY: &str = "import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(['sh', '-c', 'stty cols 100 rows 24; exec \"$@\"', 'sh'] + sys.argv[1:])))";
    let running = AllInOne::start_new(&[]);
    let data_dir = running.data_dir();
    let file = data_dir.join("complete.csv");
    fs::write(&file, lille_csv()).unwrap();

    let delivery = command();
    let mut python = Command::new("python3");
    python
        .args(["-c", RUN_IN_PTY])
        .arg(delivery.get_program())
        .args(["addresses", "import"])
        .arg(&file)
        .arg("--data-dir")
        .arg(data_dir)
        .env("TERM", "xterm")
        .stdin(Stdio::null());
    for (name, _) in delivery.get_envs() {
        python.env_remove(name);
    }
    let output = python.output().unwrap();

    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{shown} {}", stderr(&output));
    assert!(
        shown.contains(" MiB, ") && shown.contains(" left"),
        "{shown}"
    );
    assert!(shown.trim_end().ends_with("imported  40000"), "{shown}");
}
