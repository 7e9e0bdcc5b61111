//! The tests that need no process of their own, in one program.

mod address;
mod dial;
mod encrypted_link;
mod handshake;
mod harness;
mod shared_link;
mod strangers;
