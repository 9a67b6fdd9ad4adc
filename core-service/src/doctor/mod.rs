//! Checks of what a core needs, for `delivery doctor`. They change nothing: they run beside cores that
//! use the same database.

mod database;
mod finding;
mod upstreams;

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, join},
};

pub use self::finding::{Check, FIRST_START, Finding, Status};
use crate::config::Config;

/// Checks the database, the clock, the master keys, the geocoders and the router.
pub fn check(config: &'static Config) -> BoxFuture<'static, Vec<Check>> {
    join(database::check(config), upstreams::check(config))
        .map(|(mut checks, upstreams)| {
            checks.extend(upstreams);
            checks
        })
        .boxed()
}
