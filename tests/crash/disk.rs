//! A disk of a test's own, small enough to be filled and ours to freeze: a file that is mounted,
//! in a mount namespace of its own, so that nothing of it is left behind.

use std::{
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::guardian::Guardian;

/// Mounts the image. A disk that stays frozen would keep its writers from being killed, so it
/// thaws by itself in the end.
const GUARDIAN: &str = r#"
set -eu
PATH=$PATH:/usr/sbin:/sbin
image=$1
disk=$2
watchdog=
thaw() {
    fsfreeze --unfreeze "$disk" 2>/dev/null || true
    [ -z "$watchdog" ] || kill "$watchdog" 2>/dev/null || true
    watchdog=
}
trap 'thaw; umount --lazy "$disk" 2>/dev/null || true' EXIT
truncate --size=48M "$image"
mkfs.ext4 -q -m 0 "$image"
mkdir "$disk"
mount -o loop "$image" "$disk"
echo ready
while read -r order; do
    case $order in
        fill)
            # The last blocks one by one.
            for size in 1M 4k; do
                dd if=/dev/zero bs=$size oflag=append conv=notrunc of="$disk/filler" 2>/dev/null \
                    || true
            done
            sync --file-system "$disk" ;;
        free) rm "$disk/filler"; sync --file-system "$disk" ;;
        freeze)
            fsfreeze --freeze "$disk"
            ( sleep 120; fsfreeze --unfreeze "$disk" ) >/dev/null 2>&1 &
            watchdog=$! ;;
        thaw) thaw ;;
    esac
    echo "done"
done
"#;

pub(crate) struct Disk {
    guardian: Guardian,
    directory: PathBuf,
}

impl Disk {
    /// Mounts one in a directory; `None`, said on stderr, where that can't be done: it takes
    /// root and loop devices. With `CI=true` that is a failure.
    pub(crate) fn mount(directory: &Path) -> Option<Self> {
        let disk = directory.join("disk");
        let mut script = Command::new("unshare");
        script
            .args(["--mount", "--propagation=private"])
            .args(["sh", "-c", GUARDIAN, "guardian"])
            .arg(directory.join("image"))
            .arg(&disk)
            // Ctrl-C ends the tests; the guardian ends after them, with its work done.
            .process_group(0);
        let (guardian, first) = Guardian::start(&mut script);
        if first != "ready" {
            let required = std::env::var_os("CI").is_some_and(|value| value == "true");
            assert!(!required, "a disk cannot be mounted here, and CI=true");
            crate::say("a disk cannot be mounted here (root and loop devices): SKIPPED");
            return None;
        }
        Some(Self {
            guardian,
            directory: disk,
        })
    }

    /// Where it is to programs that are run there.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A program and its arguments that, with another program behind them, run that where the
    /// disk is.
    pub(crate) fn runner(&self) -> Vec<String> {
        let namespace = format!("--mount=/proc/{}/ns/mnt", self.guardian.id());
        vec!["nsenter".to_owned(), namespace, "--".to_owned()]
    }

    /// Leaves no block free.
    pub(crate) fn fill(&mut self) {
        self.guardian.order("fill");
    }

    /// Gives the blocks back.
    pub(crate) fn free(&mut self) {
        self.guardian.order("free");
    }

    /// Whoever writes from now on waits.
    pub(crate) fn freeze(&mut self) {
        self.guardian.order("freeze");
    }

    /// Lets them go on.
    pub(crate) fn thaw(&mut self) {
        self.guardian.order("thaw");
    }
}
