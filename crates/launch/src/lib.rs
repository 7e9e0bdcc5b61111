//! Starts processes: the only fork and exec.
