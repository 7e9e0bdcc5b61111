//! The sapwood command: node, topology, bench, mpi, doctor.
fn main() {}
