//! Profiles of programs: events by metrics, rounds, statistics over ranks.
