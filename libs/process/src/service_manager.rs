//! Reports the state of the process to a service manager such as systemd, by the protocol of
//! `sd_notify(3)`. Without one, nothing is reported.

use std::{
    ffi::OsStr,
    io,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            ffi::OsStrExt as _,
            net::{SocketAddr, UnixDatagram},
        },
    },
};

/// The process serves: what waits for it may start.
pub fn notify_ready() {
    notify("READY=1");
}

/// The process has begun to shut down.
pub(crate) fn notify_stopping() {
    notify("STOPPING=1");
}

fn notify(state: &str) {
    // A part of the protocol, not a setting.
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    if let Err(error) = send(&socket, state) {
        tracing::warn!(%error, socket = %socket.display(), state, "cannot notify the service manager");
    }
}

/// A name that begins with `@` is in Linux's abstract namespace.
fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let addr = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &addr)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[test]
    fn a_state_is_sent_to_a_path_or_an_abstract_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1").unwrap();
        assert_eq!(received(&socket), "READY=1");

        let name = format!("delivery-test-{}", std::process::id());
        let addr = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&addr).unwrap();
        send(OsStr::new(&format!("@{name}")), "STOPPING=1").unwrap();
        assert_eq!(received(&socket), "STOPPING=1");

        assert!(send(directory.path().join("absent").as_os_str(), "READY=1").is_err());
    }
}
