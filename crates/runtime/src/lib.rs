//! One thread and one level-triggered loop that drive one node; owns the clock.
