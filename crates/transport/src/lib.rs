//! Links between processes and their authentication: the only sockets and shared mappings.
