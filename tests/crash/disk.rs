//! A small disk that a test can fill and freeze: an image file, mounted in a separate mount namespace
//! so that nothing is left behind.

use std::{
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{prerequisites, resource_script::ResourceScript};

/// Mounts the image, executes commands, and unmounts it at the end. Processes that write to
/// a frozen disk cannot be killed, so a watchdog thaws it.
const RESOURCE_SCRIPT: &str = r#"
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
while read -r command; do
    case $command in
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
    resource_script: ResourceScript,
    directory: PathBuf,
}

impl Disk {
    /// Mounts a disk in a directory; `None`, with a message on stderr, without root or loop devices.
    pub(crate) fn mount(directory: &Path) -> Option<Self> {
        let disk = directory.join("disk");
        let mut script = Command::new("unshare");
        script
            .args(["--mount", "--propagation=private"])
            .args(["sh", "-c", RESOURCE_SCRIPT, "resource_script"])
            .arg(directory.join("image"))
            .arg(&disk)
            // Ctrl-C stops the tests; the script must outlive them to clean up.
            .process_group(0);
        let (resource_script, first_line) = ResourceScript::start(&mut script);
        if first_line != "ready" {
            prerequisites::skip(
                "full and frozen disks",
                "a disk cannot be mounted (requires root, loop devices and mkfs.ext4)",
            );
            return None;
        }
        Some(Self {
            resource_script,
            directory: disk,
        })
    }

    /// The mount point, for programs run with [`Disk::runner`].
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The command prefix that runs a program where the disk is mounted.
    pub(crate) fn runner(&self) -> Vec<String> {
        let namespace = format!("--mount=/proc/{}/ns/mnt", self.resource_script.id());
        vec!["nsenter".to_owned(), namespace, "--".to_owned()]
    }

    /// Fills all blocks.
    pub(crate) fn fill(&mut self) {
        self.resource_script.execute("fill");
    }

    /// Frees the blocks.
    pub(crate) fn free(&mut self) {
        self.resource_script.execute("free");
    }

    /// Blocks all writes.
    pub(crate) fn freeze(&mut self) {
        self.resource_script.execute("freeze");
    }

    /// Resumes blocked writes.
    pub(crate) fn thaw(&mut self) {
        self.resource_script.execute("thaw");
    }
}
