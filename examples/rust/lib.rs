//! Nothing: the tools are the examples of this package, one file each. `examples/README.md` says
//! what they do.
