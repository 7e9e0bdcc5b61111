//! Values, format strings, tags, ranks, rank sets and packets.
