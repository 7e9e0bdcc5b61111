//! Stories of nodes, told over and over with other seeds: one module for each subject. They are one
//! program, since each links the whole engine.

mod harness;

mod acknowledgement;
mod applicants;
mod attach;
mod chunks;
mod chunks_and_deaths;
mod close;
mod credit;
mod death;
mod down_filters;
mod files;
mod filters;
mod hops;
mod limits;
mod members;
mod offload;
mod own_filters;
mod point_to_point;
mod recovery;
mod replies;
mod return_of_absent;
mod rules;
mod runs;
mod schedule;
mod silence;
mod start;
mod state;
mod telemetry;
mod wave_all;
mod wave_immediate;
mod wave_timeout;
