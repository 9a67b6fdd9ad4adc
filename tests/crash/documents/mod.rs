//! The commands in the documentation, run as pasted.

mod cargo_commands;
mod commands;

use std::{
    collections::BTreeSet,
    os::unix::{fs::symlink, process::CommandExt as _},
    path::Path,
};

use serde_json::json;
use tempfile::TempDir;

use self::commands::{commands, pages};

use crate::{
    all_in_one::AllInOne,
    api_client::ApiClient,
    installed::find,
    one_processor,
    program::{PROGRAMS, command},
    reserved_addr::reserve_addr,
};

/// Runs `$1`, and stops its process group when it ends, or after two minutes.
const BOUNDED: &str = r#"(sleep 120; kill 0) & exec sh -euc "trap 'trap : TERM; kill 0; wait' EXIT
$1""#;

/// Runs the commands of a page in a folder, with free ports in place of the page's; returns their output.
fn run(page: &str, ports: &[&str], folder: &Path) -> String {
    run_commands(&commands(page), ports, folder)
}

fn run_commands(commands: &str, ports: &[&str], folder: &Path) -> String {
    let programs = PROGRAMS.delivery.parent().unwrap().to_str().unwrap();
    let mut commands = commands.replace("$PWD/target/release", programs);
    for port in ports {
        assert!(commands.contains(port), "{port}");
        commands = commands.replace(port, &reserve_addr().port().to_string());
    }
    let output = command(Path::new("sh"))
        .args(["-c", BOUNDED, "sh", &commands])
        .process_group(0)
        .current_dir(folder)
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}{errors}");
    printed
}

/// A running all-in-one, and a folder that contains its data directory as `delivery-data`, and the
/// examples.
async fn all_in_one() -> (AllInOne, TempDir) {
    let platform = AllInOne::start().await;
    let folder = tempfile::tempdir().unwrap();
    let data_dir = platform.directory.path().join("data");
    symlink(data_dir, folder.path().join("delivery-data")).unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    symlink(examples, folder.path().join("examples")).unwrap();
    (platform, folder)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_readmes_quick_start_ends_with_a_verified_notification() {
    let _processor = one_processor().await;
    let (_platform, folder) = all_in_one().await;

    // Twice: the second run finds the files and the data of the first.
    for _ in 0..2 {
        let printed = run("README.md", &["9000"], folder.path());

        let last = printed.trim_end().lines().last().unwrap_or_default();
        assert!(
            last.starts_with(r#"genuine: {"data":{"object":"#),
            "{printed}"
        );
        assert!(
            last.ends_with(r#""event":"delivery.completed"}}"#),
            "{printed}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guides_run_as_pasted_and_print_what_they_say() {
    let _processor = one_processor().await;
    let (_platform, folder) = all_in_one().await;
    let shop = commands("docs/guides/shop.md");
    let (access, _) = shop.split_once("\nSLOT=").unwrap();
    let guide_with_ports = |name: &str, ports: &[&str]| {
        let commands = commands(&format!("docs/guides/{name}.md"));
        let printed = run_commands(&format!("{access}\n{commands}"), ports, folder.path());
        printed.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let guide = |name| guide_with_ports(name, &[]);

    let printed = run("docs/guides/shop.md", &[], folder.path());
    let [status, delivery] = printed.lines().collect::<Vec<_>>()[..] else {
        panic!("{printed}");
    };
    assert_eq!(status, "TODO");
    assert!(delivery.starts_with("/api/deliveries/"), "{delivery}");

    let printed = guide_with_ports("webhooks", &["9000"]);
    let [tasks @ .., notification, event] = &printed[..] else {
        panic!("{printed:?}");
    };
    let is_done = |line: &&String| line.starts_with("status") && line.ends_with("DONE");
    let are_done = tasks.iter().filter(is_done).count();
    assert_eq!((are_done, &**event), (2, "delivery.created"));
    assert!(notification.starts_with("genuine: {"), "{notification}");

    assert_eq!(guide("internal-service"), ["DONE", "DONE"]);
    let [time, refused] = &guide("times")[..] else {
        panic!("times");
    };
    assert!(time.contains("T13:00:00+0"), "{time}");
    let times = include_str!("../../../docs/guides/times.md");
    assert!(times.contains(&format!("`{refused}`")), "{refused}");
    assert_eq!(guide("addresses"), ["48 Rue de Rivoli, 75004 Paris"]);
    assert_eq!(guide("prices"), ["499", "83", "499"]);
    assert_eq!(guide("idempotency"), ["one delivery"]);
    let errors = guide("errors");
    assert_eq!(
        errors[..2],
        ["validation_failed", "dropoff.address.telephone"]
    );
    assert_eq!(guide("requests").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_programs_of_the_shops_guide_create_a_delivery_each() {
    let _processor = one_processor().await;
    let (_platform, folder) = all_in_one().await;
    let shop = commands("docs/guides/shop.md");
    let (access, _) = shop.split_once("\nSLOT=").unwrap();
    let programs = [
        ("node", "order.mjs"),
        ("php", "order.php"),
        ("python3", "order.py"),
    ];
    for (program, file) in programs {
        if find(program, file).is_none() {
            continue;
        }
        let commands = format!("{access}\n{program} examples/shop/{file}");
        let printed = run_commands(&commands, &[], folder.path());
        assert!(printed.starts_with("TODO\n/api/deliveries/"), "{printed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pricing_page_applies_the_example_and_explains_a_price() {
    let _processor = one_processor().await;
    let (_platform, folder) = all_in_one().await;

    let printed = run("docs/pricing.md", &[], folder.path());

    assert!(printed.contains("Within the centre"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_backup_page_restores_a_backup_with_the_same_rows() {
    let _processor = one_processor().await;
    let (_platform, folder) = all_in_one().await;

    let printed = run("docs/backup.md", &[], folder.path());

    // Of `backup`, `verify` and `restore`.
    let rows: Vec<_> = printed
        .lines()
        .filter(|line| line.starts_with("rows"))
        .collect();
    assert!(rows.len() == 3 && rows[0] == rows[2], "{printed}");
    assert!(folder.path().join("restored/delivery.sqlite").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operations_page_starts_three_processes_and_creates_a_client() {
    let _processor = one_processor().await;
    let folder = tempfile::tempdir().unwrap();

    let ports = ["50051", "8080", "9101"];
    let printed = run("docs/operations.md", &ports, folder.path());

    assert!(printed.contains("api secret"), "{printed}");
}

/// What CoopCycle's webhooks can subscribe to.
const EVENTS_OF_COOPCYCLE: [&str; 7] = [
    "delivery.assigned",
    "delivery.started",
    "delivery.failed",
    "delivery.picked",
    "delivery.in_transit",
    "delivery.completed",
    "order.created",
];

/// Each of CoopCycle's events is one of the platform's or in the guide's row of those that are not, never both.
#[tokio::test(flavor = "multi_thread")]
async fn the_guide_for_coopcycle_names_exactly_the_events_that_the_platform_lacks() {
    let _processor = one_processor().await;
    let platform = AllInOne::start().await;
    let ready = platform.ready();
    let client = ApiClient::new(ready["base_url"].as_str().unwrap());
    let document = client.get("/api/docs.json").await.expect(200);
    let event_name = &document["components"]["schemas"]["EventName"];
    let events = event_name["enum"].as_array().unwrap();
    let is_lacking = |event: &&str| !events.contains(&json!(event));
    let lacking: BTreeSet<_> = EVENTS_OF_COOPCYCLE.into_iter().filter(is_lacking).collect();

    let guide = include_str!("../../../docs/guides/coopcycle.md");
    let rows: Vec<_> = guide
        .lines()
        .filter_map(|line| line.strip_prefix("| events |"))
        .collect();
    let [row] = rows[..] else {
        panic!("{rows:#?}");
    };
    let named: BTreeSet<_> = row.split('`').skip(1).step_by(2).collect();

    assert_eq!(named, lacking);
}

/// Every path in backticks that begins with a folder of the repository.
#[test]
fn the_paths_in_the_documents_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut missing = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(root.join(&page)).unwrap();
        let quoted = text.split('`').skip(1).step_by(2);
        let is_path = |quoted: &&str| {
            quoted.contains('/')
                && !quoted.contains([' ', '\n', '…'])
                && quoted
                    .split('/')
                    .next()
                    .is_some_and(|folder| !matches!(folder, "" | ".") && root.join(folder).is_dir())
        };
        for path in quoted.filter(is_path).flat_map(alternatives) {
            if !root.join(&path).exists() {
                missing.push(format!("{page}: {path}"));
            }
        }
    }
    assert_eq!(missing, [""; 0]);
}

/// Each row of the guarantees names tests, as `module::test` in backticks, or as
/// `module::submodule::test`.
#[test]
fn every_guarantee_names_tests_that_exist() {
    let page = include_str!("../../../docs/guarantees.md");
    let (guarantees, _) = page.split_once("\n## Observed").unwrap();
    let rows: Vec<_> = guarantees
        .lines()
        .filter(|line| line.starts_with("| "))
        .skip(1)
        .collect();
    assert!(rows.len() > 10, "{rows:#?}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["tests", "rest-gateway/tests"] {
        collect_files(&root.join(folder), &mut files);
    }
    for row in rows {
        let quoted = row.split('`').skip(1).step_by(2);
        let tests: Vec<_> = quoted.filter_map(|name| name.rsplit_once("::")).collect();
        assert!(!tests.is_empty(), "no test in: {row}");
        for (module, test) in tests {
            let module = module.replace("::", "/");
            let ends = [format!("/{module}.rs"), format!("/{module}/mod.rs")];
            let exists = files.iter().any(|(path, text)| {
                ends.iter().any(|end| path.ends_with(end)) && text.contains(&format!("fn {test}("))
            });
            assert!(exists, "{module} has no test {test}");
        }
    }
}

/// The paths and texts of the Rust files in a folder.
fn collect_files(folder: &Path, files: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            files.push((path.to_str().unwrap().to_owned(), text));
        }
    }
}

/// The paths that `a/{b,c}.rs` stands for.
fn alternatives(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else {
        return vec![path.to_owned()];
    };
    let (names, after) = rest.split_once('}').unwrap();
    let name = |name| format!("{before}{name}{after}");
    names.split(',').map(name).collect()
}
