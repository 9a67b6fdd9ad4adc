//! Master keys, and what is encrypted with them.

pub(crate) mod master_keys;
pub(crate) mod secret_box;
pub(crate) mod webhook_secret_box;
