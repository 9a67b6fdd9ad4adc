//! Every command block of the documents is run by a test of this module's parent, or is in [`NOT_RUN`] with
//! the reason; the programs, commands and flags that documents name exist.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
};

use crate::program::{self, PROGRAMS};

/// A block that no test of this module runs.
struct NotRun {
    page: &'static str,
    /// How it begins.
    start: &'static str,
    reason: &'static str,
}

const fn not_run(page: &'static str, start: &'static str, reason: &'static str) -> NotRun {
    NotRun {
        page,
        start,
        reason,
    }
}

const NOT_RUN: &[NotRun] = &[
    not_run(
        "README.md",
        "cargo run --release",
        "it compiles: `.ci/run` runs it; `cargo_commands` asserts that it is not ambiguous",
    ),
    not_run(
        "README.md",
        "core-service bootstrap",
        "addresses and keys are left out; docs/operations.md has commands to paste, which are run",
    ),
    not_run(
        "CONTRIBUTING.md",
        "cargo run --release",
        "they compile and test: `.ci/run` runs the first two, and is the third",
    ),
    not_run(
        "docs/benchmarks.md",
        "RUSTFLAGS=",
        "it compiles for minutes, and needs perf and a platform under load",
    ),
    not_run("docs/benchmarks.md", "cat > calculate.lua", "it needs wrk"),
    not_run(
        "docs/deployment.md",
        "cd deploy/compose",
        "it needs a Docker engine; tests/deployment checks the files",
    ),
    not_run(
        "docs/deployment.md",
        "docker compose up",
        "it needs a Docker engine; tests/deployment checks the files",
    ),
    not_run(
        "docs/deployment.md",
        "install -m 755",
        "it changes the host; tests/deployment checks the units by systemd-analyze",
    ),
    not_run(
        "docs/failover.md",
        "core-service --database-url",
        "the other flags are left out",
    ),
    not_run(
        "docs/guides/internal-service.md",
        "grpcurl",
        "it needs grpcurl; tests/e2e calls the same method",
    ),
    not_run(
        "docs/guides/internal-service.md",
        "python3 -m pip",
        "it needs grpcio-tools: tests/documentation runs it",
    ),
    not_run(
        "docs/guides/internal-service.md",
        "KEY=$(field api_key < board.json)",
        "it needs grpcio: tests/documentation runs the program",
    ),
    not_run(
        "docs/guides/internal-service.md",
        "export KEY=",
        "it needs grpcio: tests/documentation runs the program",
    ),
    not_run(
        "docs/guides/internal-service.md",
        "go install",
        "it needs Go and its modules: tests/documentation runs it where Go and protoc are installed",
    ),
    not_run(
        "docs/guides/internal-service.md",
        "cargo new",
        "it compiles for minutes; tests/documentation runs the program as an example of this repository",
    ),
    not_run(
        "docs/guides/shop.md",
        "npm install",
        "it needs npm; tests/documentation generates this client",
    ),
    not_run(
        "docs/guides/webhooks.md",
        "php -S",
        "each is an alternative; `example_receivers` runs all of them",
    ),
    not_run(
        "docs/operations.md",
        "core-service … --listen",
        "the other flags are left out",
    ),
    not_run(
        "docs/operations.md",
        "core-service master-key add",
        "ID is a placeholder; `files` and `cluster` run the commands",
    ),
    not_run(
        "docs/operations.md",
        "delivery master-key add",
        "ID is a placeholder; `files` runs the commands",
    ),
    not_run(
        "docs/operations.md",
        "delivery erase",
        "ID is a placeholder; tests/e2e runs the command",
    ),
    not_run(
        "docs/postgresql.md",
        "pg_dump",
        "the servers are placeholders; `backup_postgres` runs the programs",
    ),
    not_run(
        "docs/postgresql.md",
        "pg_basebackup",
        "the servers are placeholders; `backup_postgres` runs the programs",
    ),
    not_run("docs/testing.md", "cargo test", "`.ci/run` runs it"),
    not_run(
        "docs/testing.md",
        "cargo mutants",
        "it compiles for minutes; `.ci/mutants` runs it",
    ),
    not_run(
        "docs/testing.md",
        "BASE=main",
        "it takes an hour; `.ci/run` runs it with less time",
    ),
    not_run(
        "docs/testing.md",
        "BASE=v0.1.0",
        "the tag is a placeholder; `.ci/run` runs it for the previous commit",
    ),
    not_run(
        "docs/testing.md",
        ".ci/fuzz",
        "it takes minutes; `.ci/run` runs it with less time",
    ),
    not_run("docs/testing.md", "for test in", "it takes an hour"),
    not_run(
        "docs/testing.md",
        "DELIVERY_ATTACK_SECONDS",
        "it takes 40 minutes; `cargo test` runs it with less time",
    ),
];

/// The pages whose blocks the tests run.
const RUN: [&str; 13] = [
    "README.md",
    "docs/backup.md",
    "docs/guides/addresses.md",
    "docs/guides/errors.md",
    "docs/guides/idempotency.md",
    "docs/guides/internal-service.md",
    "docs/guides/prices.md",
    "docs/guides/requests.md",
    "docs/guides/shop.md",
    "docs/guides/times.md",
    "docs/guides/webhooks.md",
    "docs/operations.md",
    "docs/pricing.md",
];

/// The languages of blocks without commands.
const OTHER_LANGUAGES: [&str; 6] = ["ini", "json", "py", "text", "toml", "ts"];

/// A fenced block of a page.
struct Block {
    language: String,
    text: String,
}

fn blocks(text: &str) -> Vec<Block> {
    let fenced = text.split("\n```").skip(1).step_by(2);
    let block = |fenced: &str| {
        let (language, text) = fenced.split_once('\n').unwrap();
        Block {
            language: language.to_owned(),
            text: text.to_owned(),
        }
    };
    fenced.map(block).collect()
}

pub(super) fn read(page: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    std::fs::read_to_string(path).unwrap()
}

fn reason_not_to_run(page: &str, block: &Block) -> Option<&'static NotRun> {
    let is_of = |row: &&NotRun| row.page == page && block.text.starts_with(row.start);
    NOT_RUN.iter().find(is_of)
}

/// The commands of a page that are run as pasted, from a heading on if one is given.
pub(super) fn commands(page: &str) -> String {
    assert!(RUN.contains(&page), "{page}");
    let blocks = blocks(&read(page)).into_iter();
    blocks
        .filter(|block| block.language == "sh" && reason_not_to_run(page, block).is_none())
        .map(|block| block.text + "\n")
        .collect()
}

/// README.md, CONTRIBUTING.md, and those in `docs`.
pub(super) fn pages() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
    for folder in ["docs", "docs/guides"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let name = path.file_name().unwrap().to_str().unwrap();
                pages.push(format!("{folder}/{name}"));
            }
        }
    }
    pages
}

#[test]
fn every_command_block_is_run_or_listed_with_the_reason() {
    let mut used = BTreeSet::new();
    let mut run = BTreeSet::new();
    let mut unknown = Vec::new();
    for page in pages() {
        for block in blocks(&read(&page)) {
            if OTHER_LANGUAGES.contains(&&*block.language) {
                continue;
            }
            let start = block.text.lines().next().unwrap_or_default();
            match reason_not_to_run(&page, &block) {
                Some(row) => {
                    assert!(!row.reason.is_empty());
                    used.insert((row.page, row.start));
                }
                None if block.language == "sh" && RUN.contains(&&*page) => {
                    run.insert(page.clone());
                }
                None => unknown.push(format!("{page} [{}]: {start}", block.language)),
            }
        }
    }

    assert_eq!(unknown, [""; 0], "neither run nor in NOT_RUN");
    let listed: BTreeSet<_> = NOT_RUN.iter().map(|row| (row.page, row.start)).collect();
    assert_eq!(used, listed);
    assert_eq!(run, RUN.map(str::to_owned).into());
    let tests = include_str!("mod.rs");
    for page in RUN {
        let name = page.strip_prefix("docs/guides/").unwrap_or(page);
        let name = name.strip_suffix(".md").filter(|_| name != page);
        let is_named = name.is_some_and(|name| tests.contains(&format!("(\"{name}\"")));
        assert!(
            is_named || tests.contains(&format!("\"{page}\"")),
            "{page} is in RUN, but no test runs it"
        );
    }
}

/// The examples are run by tests. An excerpt of a method is not indented.
#[test]
fn each_block_in_python_is_an_excerpt_of_an_example() {
    let without_indentation =
        |text: &str| -> Vec<String> { text.lines().map(|line| line.trim().to_owned()).collect() };
    let examples = ["courier/courier.py", "dispatch/dispatch_board.py"];
    let examples = examples.map(|file| without_indentation(&read(&format!("examples/{file}"))));
    let mut count = 0;
    for page in pages() {
        for block in blocks(&read(&page)) {
            if block.language != "py" {
                continue;
            }
            let excerpt = without_indentation(&block.text);
            let is_in = |example: &Vec<String>| {
                example
                    .windows(excerpt.len())
                    .any(|lines| lines == excerpt.as_slice())
            };
            assert!(examples.iter().any(is_in), "{page}: {}", block.text);
            count += 1;
        }
    }
    assert!(count > 0);
}

/// In blocks and in backticks, those that are not run too.
#[test]
fn the_documents_name_commands_and_flags_that_exist() {
    let mut helps = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages() {
        let text = read(&page);
        for command in text.split(['`', '\n']).map(str::trim) {
            let mut words = command.split_whitespace();
            let program = match words.next() {
                Some("delivery") => &PROGRAMS.delivery,
                Some("core-service") => &PROGRAMS.core,
                Some("rest-gateway") => &PROGRAMS.gateway,
                Some("webhook-dispatcher") => &PROGRAMS.dispatcher,
                _ => continue,
            };
            // Prose after a program's name has no flags.
            let flags: Vec<_> = words
                .clone()
                .filter(|word| word.starts_with("--"))
                .collect();
            let subcommands: Vec<_> = words
                .take_while(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
                .take_while(|word| !word.starts_with("--"))
                .map(str::to_owned)
                .collect();
            if flags.is_empty() {
                continue;
            }
            let help = helps
                .entry((program, subcommands.clone()))
                .or_insert_with(|| help(program, &subcommands));
            for flag in flags {
                let name = flag.split(['=', '…', ',', ')', '"', '\'']).next().unwrap();
                count += 1;
                if !help.contains(name) {
                    wrong.push(format!("{page}: `{command}`: {name}"));
                }
            }
        }
    }

    assert_eq!(wrong, [""; 0]);
    assert!(count > 50, "{count}");
}

/// The help of a command; of its longest prefix that is one.
fn help(program: &Path, subcommands: &[String]) -> String {
    for length in (0..=subcommands.len()).rev() {
        let mut command: Command = program::command(program);
        let output = program::output(command.args(&subcommands[..length]).arg("--help"));
        if output.status.success() {
            return String::from_utf8(output.stdout).unwrap();
        }
    }
    String::new()
}
