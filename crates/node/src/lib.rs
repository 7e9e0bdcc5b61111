//! The sans-IO state machine of one process in the tree.
