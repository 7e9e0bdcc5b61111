//! The floor of the benchmarks: a tree of plain blocking processes.
