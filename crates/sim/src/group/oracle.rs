//! What must hold of a group, whatever happens to it.
