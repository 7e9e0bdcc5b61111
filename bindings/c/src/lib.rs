//! The C interface, sapwood.h.
