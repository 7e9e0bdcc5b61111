//! The filter rule and the built-in filters, one file each.
