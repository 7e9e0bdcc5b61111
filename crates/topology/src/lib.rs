//! Tree shapes: specifications, files, builders, ranks, cost model.
