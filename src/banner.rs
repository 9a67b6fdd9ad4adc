//! The line that `delivery` prints once it is ready. It has no secret: it may be in the log of a service.

use std::{
    env,
    io::{self, Write},
    path::Path,
};

use delivery::Platform;

pub(crate) fn print(platform: &Platform, data_dir: &Path) -> io::Result<()> {
    let Platform {
        base_url, grpc_url, ..
    } = platform;
    let keys = data_dir.join("ready.json");
    let program = quoted(&env::args().next().unwrap_or_default());
    let directory = quoted(&data_dir.to_string_lossy());
    let has_demo_client = platform
        .demo
        .as_ref()
        .is_some_and(|demo| demo.client.is_some());
    let next = if has_demo_client {
        format!(
            r#"curl -H "Authorization: Bearer $({program} token --data-dir {directory})" {base_url}/api/time_slots/choices"#
        )
    } else {
        format!("{program} stores list --data-dir {directory}")
    };
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "ready: documentation {base_url}/api/docs, REST {base_url}, gRPC {grpc_url}, keys in {}; next: {next}",
        keys.display(),
    )?;
    out.flush()
}

/// A word of a shell's command.
fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), Into::into)
}
