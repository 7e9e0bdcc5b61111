//! The tests that need no process of their own, in one program.

mod address_file;
mod answers;
mod apart;
mod asking;
mod causes;
mod clocks;
mod departures;
mod endings;
mod example;
mod group;
mod group_bypass;
mod group_defined;
mod group_hops;
mod group_liars;
mod members;
mod recovery;
mod resumption;
mod shared_memory;
mod sketches;
mod slow;
mod status;
mod streams;
mod support;
