//! `delivery addresses import`, broken off: by a kill of the platform, and of the command.

use std::{
    fmt::Write as _,
    fs::{self, File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::harness::all_in_one::{AllInOne, command, operator, operator_json, stderr};

const HEADER: &str = "numero;rep;nom_voie;code_postal;nom_commune;lon;lat\n";
/// The demo's, and one that is in the lists here alone.
const OLD: &str = "24 Rue de la Paix, 75002 Paris";
const NEW: &str = "7 Rue de Gand, 59000 Lille";
/// Far beyond what is waited for.
const DEADLINE: Duration = Duration::from_mins(1);

/// A list of so many houses of a street of Lille, more than a megabyte of it.
fn lille() -> String {
    let mut list = String::from(HEADER);
    for house in 1..=40_000 {
        let longitude = 3.0 + f64::from(house) / 1e6;
        writeln!(list, "{house};;Rue de Gand;59000;Lille;{longitude};50.6").unwrap();
    }
    list
}

/// An import that has taken in a megabyte and waits for more.
struct UnderWay {
    command: Child,
    /// While it is there, the list has not ended.
    list: File,
}

impl UnderWay {
    fn begin(data_dir: &Path) -> Self {
        let pipe = data_dir.join("lille.csv");
        if !pipe.exists() {
            let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
            assert!(made.success());
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
        let mut list = OpenOptions::new().write(true).open(&pipe).unwrap();
        list.write_all(lille().as_bytes()).unwrap();
        until(|| making(data_dir).exists());
        Self { command, list }
    }
}

/// The index that is not in force yet.
fn making(data_dir: &Path) -> PathBuf {
    data_dir.join("addresses.sqlite.new")
}

fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < DEADLINE);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Where an address is, if it is known.
fn geo(running: &AllInOne, address: &str) -> Value {
    let order = json!({ "dropoff": { "address": address, "before": "tomorrow 13:00" } });
    let created = running.call("/api/deliveries", &["-d", &order.to_string()]);
    created["dropoff"]["address"]["geo"].clone()
}

fn import_whole(data_dir: &Path) {
    let file = data_dir.join("whole.csv");
    fs::write(&file, lille()).unwrap();
    let imported = operator_json(data_dir, &["addresses", "import", file.to_str().unwrap()]);
    assert_eq!(imported, json!({ "taken": 40_000, "skipped": [] }));
}

#[test]
fn a_platform_killed_in_an_import_has_its_old_addresses_and_imports_again() {
    let data_dir = tempfile::tempdir().unwrap();
    let data_dir = data_dir.path();
    let running = AllInOne::start(data_dir, &[]);
    let old = geo(&running, OLD);
    assert!(old.is_object());

    let UnderWay { command, list } = UnderWay::begin(data_dir);
    assert_eq!(geo(&running, OLD)["latitude"], old["latitude"]);
    assert_eq!(geo(&running, NEW), Value::Null);
    running.stop("-KILL");
    assert!(making(data_dir).exists());
    drop(list);
    let told = command.wait_with_output().unwrap();
    assert_eq!(told.status.code(), Some(1), "{}", stderr(&told));

    let running = AllInOne::start(data_dir, &[]);
    assert_eq!(geo(&running, OLD)["latitude"], old["latitude"]);
    assert_eq!(geo(&running, NEW), Value::Null);
    import_whole(data_dir);
    assert!(geo(&running, NEW).is_object());
    assert_eq!(geo(&running, OLD), Value::Null);
    assert!(!making(data_dir).exists());
}

#[test]
fn a_command_killed_in_an_import_changes_nothing_and_leaves_room_for_the_next() {
    let data_dir = tempfile::tempdir().unwrap();
    let data_dir = data_dir.path();
    let running = AllInOne::start(data_dir, &[]);

    let UnderWay { mut command, list } = UnderWay::begin(data_dir);
    let file = data_dir.join("another.csv");
    fs::write(&file, format!("{HEADER}1;;Rue X;59000;Lille;3;50\n")).unwrap();
    let second = operator(data_dir, &["addresses", "import", file.to_str().unwrap()]);
    assert_eq!(second.status.code(), Some(1));
    assert_eq!(stderr(&second), "another import is under way\n");
    command.kill().unwrap();
    command.wait().unwrap();
    drop(list);
    until(|| !making(data_dir).exists());

    assert!(geo(&running, OLD).is_object());
    assert_eq!(geo(&running, NEW), Value::Null);
    import_whole(data_dir);
    assert!(geo(&running, NEW).is_object());
}

#[test]
fn an_import_shows_on_a_terminal_how_far_it_is() {
    const ON_A_TERMINAL: &str = "import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(['sh', '-c', 'stty cols 100 rows 24; exec \"$@\"', 'sh'] + sys.argv[1:])))";
    let data_dir = tempfile::tempdir().unwrap();
    let data_dir = data_dir.path();
    let _running = AllInOne::start(data_dir, &[]);
    let file = data_dir.join("whole.csv");
    fs::write(&file, lille()).unwrap();

    let delivery = command();
    let mut python = Command::new("python3");
    python
        .args(["-c", ON_A_TERMINAL])
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
    assert!(shown.trim_end().ends_with("40000 addresses"), "{shown}");
}
