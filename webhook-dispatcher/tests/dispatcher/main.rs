//! The dispatcher from outside: a core made for the test on one side, receivers on real sockets
//! on the other.
#![cfg(test)]

mod bad_receivers;
mod connecting;
mod cores;
mod crowd;
mod deadlines;
mod guard;
mod harness;
mod http2;
mod rebinding;
mod sending;
mod shutdown;
mod stream;
mod tls;
mod webhook_tests;
