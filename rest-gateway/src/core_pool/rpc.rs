//! A method of a generated client as a function.

/// `rpc!(TasksClient.get_task)` is a function of a channel and a message, and calls this method on a
/// client of the channel.
macro_rules! rpc {
    ($client:ident.$method:ident) => {
        |core, message| async { $client::new(core).$method(message).await }
    };
}

pub(crate) use rpc;
