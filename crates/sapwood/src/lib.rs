//! A tree of processes that asks every process of a job and says who is missing.
