//! Why a connection to an address has failed.

use sapwood_transport::Error;

/// Why an attempt has failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) reason: String,
    /// Whether the connection was refused: no process listens at the address.
    pub(crate) is_refused: bool,
}

impl Failure {
    /// Something else than a refused connection.
    pub(crate) fn other(reason: String) -> Self {
        Self { reason, is_refused: false }
    }

    /// Joins the failures at two addresses of one process: it counts as refused only if both
    /// refused.
    pub(crate) fn and(self, other: Self) -> Self {
        if self.is_refused { other } else { self }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let is_refused = matches!(error, Error::Refused { .. });
        Self { reason: error.to_string(), is_refused }
    }
}
