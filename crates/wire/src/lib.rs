//! The only encoder and decoder: frames, control messages, limits.
