//! The C interface: `sapwood.h`, `libsapwood.so` and `libsapwood.a`.
//!
//! Each function converts its arguments from C, calls the `sapwood` crate and converts the result;
//! nothing here knows how a network works. The header is generated from these modules, in the order
//! of the list below, so their documentation is the documentation of the C interface. `varargs.c`
//! walks the argument lists of the functions that end in `...`; it asks [`format`] what stands in
//! them, so that there is one reader of format strings.
//!
//! What a caller can get wrong is an error code: a handle that is NULL, on another thread than its
//! own, or in a forked child. What no library can see (a handle that was closed, a pointer to less
//! memory than its count says) is named in the header's opening.
#![deny(missing_docs)]
#![allow(non_camel_case_types, reason = "the names are those of the C header")]
#![allow(improper_ctypes, reason = "what C holds behind a pointer is opaque to it")]

pub mod answer;
pub mod back_end;
pub mod communicator;
pub mod error;
pub mod estimate;
pub mod event;
mod exported;
mod filters;
pub mod format;
mod handle;
pub mod network;
pub mod options;
pub mod packet;
pub mod serve;
pub mod sketch;
pub mod stream;
mod text;
pub mod topology;
mod values;
pub mod varargs;
