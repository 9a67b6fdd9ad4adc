//! Backups over SQLite: taken under load and restored elsewhere; which copies of its files are refused.

use std::{
    fs,
    os::unix::{
        fs::{FileTypeExt as _, PermissionsExt as _, symlink},
        net::UnixListener,
    },
    path::Path,
    process::Output,
    time::Instant,
};

use serde_json::Value;

use crate::{
    all_in_one::AllInOne,
    caller::{Caller, iri},
    checker::{self, RECOVERY_TIMEOUT},
    counting_receiver::CountingReceiver,
    event_log::EventLog,
    failure::Failure,
    load::{Acknowledged, Load},
    one_processor,
    program::{self, PROGRAMS},
};

/// The requests before the backup, and between its end and the loss of the platform.
pub(crate) const REQUESTS: u64 = 150;

/// The number of creators and completers.
pub(crate) const WORKERS: usize = 6;

fn run_program(arguments: &[&str]) -> Output {
    program::output(program::command(&PROGRAMS.delivery).args(arguments))
}

/// The error of a command that must be refused.
#[track_caller]
fn refusal(output: Output) -> String {
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    errors
}

pub(crate) fn path_str(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Everything acknowledged before the backup is in the restored platform, every completion before it is
/// notified, and none under two ids: those that were in flight or sent meanwhile have their old id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_before_a_backup_under_load_is_restored_from_it() {
    let _processor = one_processor().await;
    let mut platform = AllInOne::start().await;
    let (shop, board) = (platform.shop().await, platform.dispatch_board().await);
    let receiver = CountingReceiver::subscribed(&shop).await;
    // A backlog: nothing is delivered before the backup.
    receiver.set_responding(false);
    let load = Load::start(WORKERS, &shop, &board);
    load.wait_for_successes(REQUESTS).await;

    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("platform.backup");
    let before = load.acknowledged();
    let started = Instant::now();
    let taken = platform.operator(&["backup", path_str(&file), "--json"]);
    let took = started.elapsed();
    let taken = program::parse(&taken);
    load.wait_for_successes(REQUESTS).await;
    let slowest = load.slowest_success();
    receiver.set_responding(true);
    receiver
        .wait(RECOVERY_TIMEOUT, |received| received.total > 0)
        .await;
    platform.server.kill();
    drop(load);
    let sent_by_the_lost_platform = receiver.received().total;
    let key_file = platform.directory.path().join("data/master.key");

    let data_dir = elsewhere.path().join("data");
    let restored = run_program(&[
        "restore",
        path_str(&file),
        "--json",
        "--data-dir",
        path_str(&data_dir),
        "--master-key-file",
        path_str(&key_file),
    ]);
    let restored = program::parse(&restored);
    assert_eq!(restored, taken);
    assert_eq!(taken["includes_master_key"], false);
    let restored = AllInOne::start_with_data(elsewhere).await;

    let query = |statement: &str| restored.sql(statement);
    verify_restored(&before, &restored.shop().await, &receiver, query).await;
    assert_eq!(restored.sql("PRAGMA integrity_check"), "ok");
    crate::report(&format!(
        "backup of {} bytes under the load of {WORKERS} creators and completers in {} ms, slowest success {} ms; before it {} creates, {} completions; {sent_by_the_lost_platform} notifications sent by the lost platform, {} repeated",
        taken["bytes"],
        took.as_millis(),
        slowest.as_millis(),
        before.created.len(),
        before.done.len(),
        receiver.received().repeats(),
    ));
}

/// Asserts that a restored platform has what was acknowledged before the backup, that every completion
/// is notified, none under two ids, and that it serves.
pub(crate) async fn verify_restored(
    before: &Acknowledged,
    shop: &Caller,
    receiver: &CountingReceiver,
    query: impl Fn(&str) -> String,
) {
    assert_restored(before, shop).await;
    let completed = before.completed();
    assert!(!completed.is_empty());
    let is_notified = receiver.wait(RECOVERY_TIMEOUT, |received| {
        received.missing(&completed).is_empty()
    });
    assert!(is_notified.await, "not all completions are notified");
    checker::wait_until_settled(query, RECOVERY_TIMEOUT).await;
    let twice = receiver.received();
    let twice = twice.notified_twice();
    assert!(
        twice.iter().all(|delivery| !completed.contains(*delivery)),
        "notified under two ids: {twice:?}"
    );
    let log = EventLog::read(shop).await;
    assert_eq!((log.gaps(), log.missing(&completed)), (0, 0));
    shop.create_delivery().await.unwrap();
}

/// Asserts that the acknowledged deliveries are there, and their completed tasks are done.
async fn assert_restored(acknowledged: &Acknowledged, shop: &Caller) {
    assert!(!acknowledged.created.is_empty() && !acknowledged.done.is_empty());
    for (comment, created) in &acknowledged.created {
        let read: Result<Value, Failure> = shop.get(iri(created)).await;
        let read = read.unwrap_or_else(|failure| panic!("{}: {failure}", iri(created)));
        assert_eq!(read["dropoff"]["comments"], **comment);
        for task in ["pickup", "dropoff"] {
            if acknowledged.done.contains(iri(&created[task])) {
                assert_eq!(read[task]["status"], "DONE", "{}", iri(&created[task]));
            }
        }
        // A request that is repeated after the restore takes effect once.
        let repeated = shop.create_delivery_with_key(comment).await.unwrap();
        assert_eq!(iri(&repeated), iri(created));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_of_a_stopped_platform_is_complete_without_its_write_ahead_log() {
    let _processor = one_processor().await;
    let mut platform = AllInOne::start().await;
    let shop = platform.shop().await;
    for _ in 0..56 {
        shop.create_delivery().await.unwrap();
    }
    // The platform also starts if `sql` has moved the log of a killed one into the file.
    platform.server.kill();
    assert_eq!(platform.sql("SELECT count(*) FROM deliveries"), "56");
    platform.server.start().await;
    assert!(platform.server.terminate().await.success());

    let stopped = tempfile::tempdir().unwrap();
    let (data, copy) = (platform.directory.path(), stopped.path().join("data"));
    fs::create_dir(&copy).unwrap();
    for file in ["delivery.sqlite", "master.key"] {
        fs::copy(data.join("data").join(file), copy.join(file)).unwrap();
    }

    let started = AllInOne::start_with_data(stopped).await;
    assert_eq!(started.sql("SELECT count(*) FROM deliveries"), "56");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backup_and_restore_refuse_unsafe_targets_other_keys_and_damaged_files() {
    let _processor = one_processor().await;
    let platform = AllInOne::start().await;
    platform.shop().await.create_delivery().await.unwrap();
    let data = platform.directory.path().join("data");
    let backups = tempfile::tempdir().unwrap();
    let file = backups.path().join("platform.backup");
    let endless = backups.path().join("endless");
    symlink(&endless, &endless).unwrap();
    for (database, reason) in [
        (backups.path().join("missing"), "does not exist: name"),
        (endless.clone(), "Too many levels of symbolic links"),
    ] {
        let arguments = [
            "backup",
            path_str(&file),
            "--database-file",
            path_str(&database),
        ];
        let error = refusal(run_program(&arguments));
        assert!(error.contains(reason), "{error}");
    }
    fs::remove_file(endless).unwrap();
    let in_data_dir = ["--data-dir", path_str(&data)];
    let backup = |arguments: &[&str]| run_program(&[&["backup"], arguments, &in_data_dir].concat());

    let database = data.join("delivery.sqlite");
    let error = refusal(backup(&[path_str(&database), "--force"]));
    assert!(
        error.contains("is in the directory of the database"),
        "{error}"
    );
    let taken = backup(&[path_str(&file), "--with-master-key", "--json"]);
    let taken = program::parse(&taken);
    assert_eq!(taken["includes_master_key"], true);
    assert_eq!(taken["counts"]["deliveries"], 1);
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let error = refusal(backup(&[path_str(&file)]));
    assert!(error.contains("--force"), "{error}");
    let verified = run_program(&["verify", path_str(&file), "--json"]);
    assert_eq!(program::parse(&verified), taken);
    let files = fs::read_dir(backups.path()).unwrap().count();
    assert_eq!(files, 1, "only the backup is left");
    assert_special_files_are_kept(&file, |arguments| refusal(backup(arguments)));

    let error = refusal(run_program(&[
        "restore",
        path_str(&file),
        "--data-dir",
        path_str(&data),
    ]));
    assert!(error.contains("is not empty"), "{error}");
    let restore = |file: &Path, name: &str, more: &[&str]| {
        let to = backups.path().join(name);
        let arguments = ["restore", path_str(file), "--data-dir", path_str(&to)];
        run_program(&[&arguments, more].concat())
    };
    let without_key = backups.path().join("without-key");
    let taken = backup(&[path_str(&without_key)]);
    assert!(taken.status.success());
    let other_key = backups.path().join("other.key");
    fs::write(&other_key, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n").unwrap();
    fs::set_permissions(&other_key, fs::Permissions::from_mode(0o600)).unwrap();
    for (more, expected) in [
        (&[][..], "does not include the master key"),
        (
            &["--master-key-file", path_str(&other_key)],
            "another master key",
        ),
    ] {
        // Into the same directory: a refused restore leaves it empty.
        let refused = restore(&without_key, "data", more);
        let errors = String::from_utf8(refused.stderr).unwrap();
        assert!(errors.contains(expected), "{errors}");
    }
    assert!(restore(&file, "data", &[]).status.success());

    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let damaged = backups.path().join("damaged");
    fs::write(&damaged, &bytes).unwrap();
    let error = refusal(run_program(&["verify", path_str(&damaged)]));
    assert!(error.contains("is not a complete backup"), "{error}");
    let refused = restore(&damaged, "elsewhere", &[]);
    assert_eq!(refused.status.code(), Some(1));

    let restored = AllInOne::start_with_data(backups).await;
    assert_eq!(restored.sql("SELECT count(*) FROM deliveries"), "1");
}

/// Asserts that a backup replaces no directory, link or socket. A socket stands for a device, which only
/// root can replace.
fn assert_special_files_are_kept(file: &Path, refused: impl Fn(&[&str]) -> String) {
    let special = tempfile::tempdir().unwrap();
    let path = |name: &str| special.path().join(name);
    fs::create_dir(path("directory")).unwrap();
    let _socket = UnixListener::bind(path("socket")).unwrap();
    symlink(file, path("link")).unwrap();
    symlink(path("socket"), path("link to a socket")).unwrap();
    symlink(path("nowhere"), path("dangling link")).unwrap();
    let kinds = || {
        let entries = fs::read_dir(special.path()).unwrap().map(Result::unwrap);
        let kinds = entries.map(|entry| (entry.file_name(), entry.file_type().unwrap()));
        let mut kinds: Vec<_> = kinds
            .map(|(name, kind)| (name, kind.is_dir(), kind.is_symlink(), kind.is_socket()))
            .collect();
        kinds.sort();
        kinds
    };
    let before = kinds();
    for (name, ..) in &before {
        let target = special.path().join(name);
        let target = path_str(&target);
        for arguments in [&[target][..], &[target, "--force"]] {
            let error = refused(arguments);
            assert!(
                error.contains("name another file,"),
                "{arguments:?}: {error}"
            );
            assert!(!error.contains("--force"), "{arguments:?}: {error}");
        }
    }
    assert_eq!((before.len(), kinds()), (5, before));
}

/// A backup that is killed leaves no file under its name, and the next one succeeds. A platform does not
/// start from a directory in the state in which a killed restore leaves it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_backup_or_restore_leaves_nothing_that_looks_complete() {
    let _processor = one_processor().await;
    let platform = AllInOne::start().await;
    let data = platform.directory.path().join("data");
    let backups = tempfile::tempdir().unwrap();
    let file = backups.path().join("platform.backup");
    let arguments = ["backup", path_str(&file), "--data-dir", path_str(&data)];
    let mut backup = program::command(&PROGRAMS.delivery)
        .args(arguments)
        .spawn()
        .unwrap();
    let partial = file.with_added_extension("partial");
    while !partial.exists() {
        let exit = backup.try_wait().unwrap();
        assert!(exit.is_none(), "{exit:?}");
    }
    backup.kill().unwrap();
    backup.wait().unwrap();
    assert!(partial.exists() && !file.exists(), "it was not interrupted");
    assert!(run_program(&arguments).status.success());

    let interrupted = backups.path().join("data");
    fs::create_dir(&interrupted).unwrap();
    fs::write(interrupted.join("delivery.sqlite-restoring"), "").unwrap();
    let error = refusal(run_program(&["--data-dir", path_str(&interrupted)]));
    assert!(error.contains("restore the backup again"), "{error}");
}
