//! The tests of this crate, in one program.

mod copies;
mod costs;
mod credit;
mod defined;
mod grace;
mod late;
mod links;
mod member;
mod messages;
mod missing;
mod names;
mod owed;
mod papers;
mod past;
mod room;
mod support;
mod taking;
mod view;
mod waiting;
