//! What an answer consists of: one piece, pieces that are shared, or events as they come.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

/// The body of an answer.
pub(crate) enum PageBody {
    /// Pieces that are there. They are shared with the history, not copied.
    Pieces(VecDeque<Bytes>),
    /// Pieces that come later.
    Events(mpsc::Receiver<Bytes>),
}

impl PageBody {
    pub(crate) fn of(content: impl Into<Bytes>) -> Self {
        Self::Pieces(VecDeque::from([content.into()]))
    }
}

impl Body for PageBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match self.get_mut() {
            Self::Pieces(pieces) => Poll::Ready(pieces.pop_front()),
            Self::Events(receiver) => receiver.poll_recv(context),
        };
        piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Pieces(pieces) => {
                SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum())
            }
            Self::Events(_) => SizeHint::default(),
        }
    }
}
