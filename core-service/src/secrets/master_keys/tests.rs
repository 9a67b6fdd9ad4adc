use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// A file with one key, and the id of that key.
fn new_file() -> (tempfile::TempDir, PathBuf, KeyId) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("master.key");
    let keys = MasterKeys::read_or_create(&path).unwrap();
    let id = keys.ids().next().unwrap();
    (directory, path, id)
}

fn add(current: bool) -> MasterKeyCommand {
    MasterKeyCommand::Add { current }
}

#[test]
fn a_master_key_is_created_once_and_readable_only_by_its_owner() {
    let (directory, path, first) = new_file();

    let again = MasterKeys::read_or_create(&path).unwrap();

    assert_eq!(again.ids().collect::<Vec<_>>(), [first]);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    let nowhere = directory.path().join("nowhere.key");
    for command in [MasterKeyCommand::List, add(false)] {
        let error = command.run(&nowhere).unwrap_err();
        assert!(matches!(error, Error::Missing { .. }), "{error}");
    }
}

/// Another process may create it at the same time.
#[test]
fn a_file_that_exists_by_now_is_not_replaced() {
    let (directory, path, first) = new_file();
    let other = directory.path().join("other.key");
    let other = MasterKeys::read_or_create(&other).unwrap();

    other.create(&path).unwrap();

    let ids = MasterKeyCommand::List.run(&path).unwrap();
    assert_eq!(ids, [first]);
}

#[test]
fn a_new_master_key_is_not_written_into_a_planted_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("master.key");
    let planted = directory.path().join("planted");
    fs::write(&planted, "").unwrap();
    let guessed = path.with_extension(format!("key.{}", std::process::id()));
    std::os::unix::fs::symlink(&planted, guessed).unwrap();

    MasterKeys::read_or_create(&path).unwrap();

    assert_eq!(fs::read_to_string(planted).unwrap(), "");
}

#[test]
fn keys_are_added_made_current_and_moved_to_the_removed_ones() {
    let (_directory, path, first) = new_file();
    let added = add(false).run(&path).unwrap();
    let [_, second] = added[..] else {
        panic!("{added:?}");
    };
    assert_eq!(added, [first, second]);
    let added = add(true).run(&path).unwrap();
    let third = added[0];
    assert_eq!(added, [third, first, second]);

    let used = MasterKeyCommand::Use { id: second }.run(&path).unwrap();
    assert_eq!(used, [second, third, first]);
    let list = || MasterKeyCommand::List.run(&path).unwrap();
    assert_eq!(list(), used);

    let remove = |id| MasterKeyCommand::Remove { id }.run(&path);
    assert!(matches!(remove(second), Err(Error::Current { .. })));
    assert_eq!(remove(first).unwrap(), [second, third]);
    assert!(matches!(remove(first), Err(Error::NotFound { .. })));
    assert_eq!(remove(third).unwrap(), [second]);
    assert_eq!(list(), [second]);

    let removed = path.with_extension("key.removed");
    let ids = MasterKeyCommand::List.run(&removed).unwrap();
    assert_eq!(ids, [first, third]);
    let mode = fs::metadata(&removed).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_change_keeps_the_mode_and_the_link_of_the_file() {
    let (directory, path, first) = new_file();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    let link = directory.path().join("link.key");
    std::os::unix::fs::symlink(&path, &link).unwrap();

    let changed = add(false).run(&link).unwrap();

    assert_eq!(changed[0], first);
    assert_eq!(MasterKeyCommand::List.run(&path).unwrap(), changed);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o400);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

/// Only root can give a file away, and then use it.
#[test]
fn a_change_keeps_the_owner_of_the_file() {
    let (_directory, path, _) = new_file();
    if chown(&path, Some(65_534), Some(65_533)).is_err() {
        eprintln!("*** SKIPPED: only root can give a file away");
        return;
    }

    add(false).run(&path).unwrap();

    let metadata = fs::metadata(&path).unwrap();
    assert_eq!([metadata.uid(), metadata.gid()], [65_534, 65_533]);
}

/// As on a read-only file system.
#[test]
fn a_file_of_a_file_system_that_cannot_flush_is_used() {
    flush(Path::new("/proc/self/status")).unwrap();

    let missing = flush(Path::new("/proc/self/missing")).unwrap_err();
    assert!(matches!(missing, Error::Write { .. }), "{missing:?}");
}

#[test]
fn a_path_that_cannot_have_a_file_is_an_error() {
    let (_directory, path, id) = new_file();

    let below_file = MasterKeys::read(&path.join("x")).err();
    assert!(!matches!(below_file, None | Some(Error::Missing { .. })));
    let keys = MasterKeys::read(&path).unwrap();
    let too_long = path.with_file_name("x".repeat(300));
    let created = keys.create(&too_long).unwrap_err();
    assert_eq!(created.kind(), io::ErrorKind::InvalidFilename);
    let below_file = MasterKeyCommand::Remove { id }.run(&path.join("x"));
    let below_file = below_file.unwrap_err();
    assert!(matches!(below_file, Error::Write { .. }), "{below_file:?}");
}

#[test]
fn the_directory_of_a_file_name_is_the_current_one() {
    assert_eq!(directory_of(Path::new("master.key")), Path::new("."));
    assert_eq!(directory_of(Path::new("/etc/key")), Path::new("/etc"));
}

#[test]
fn concurrent_changes_lose_no_key() {
    let (_directory, path, _) = new_file();

    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| add(false).run(&path).unwrap());
        }
    });

    assert_eq!(MasterKeyCommand::List.run(&path).unwrap().len(), 9);
}

#[test]
fn a_file_is_rejected_unless_its_lines_are_different_keys() {
    let (_directory, path, _) = new_file();
    let key = fs::read_to_string(&path).unwrap();
    let read = |text: &str| {
        fs::write(&path, text).unwrap();
        MasterKeys::read(&path)
    };

    let half = BASE64_STANDARD.encode([7; KEY_LENGTH / 2]);
    for text in ["", "\n", "not a key", &half, &format!("{key}{key}")] {
        let read = read(text);
        assert!(matches!(read, Err(Error::Malformed { .. })), "{text:?}");
    }
    let other = BASE64_STANDARD.encode([7; KEY_LENGTH]);
    let keys = read(&format!("\n {}\r\n\n{other}", key.trim())).unwrap();
    assert_eq!(keys.ids().count(), 2);
}

#[test]
fn an_id_is_eight_hexadecimal_digits() {
    let id = KeyId([0, 0x1a, 0xff, 7]);

    assert_eq!(id.to_string(), "001aff07");
    assert_eq!("001AFF07".parse(), Ok(id));
    for wrong in ["", "001aff0", "001aff078", "+01aff07", "001affg7"] {
        assert!(wrong.parse::<KeyId>().is_err(), "{wrong}");
    }
}
