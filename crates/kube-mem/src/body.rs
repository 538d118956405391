//! The body of an answer: bytes that are there, or a watch that goes on.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::watch::WatchStream;

/// The body of every answer of the server.
pub struct Body {
    kind: Kind,
}

enum Kind {
    Bytes(Option<Bytes>),
    Watch(Box<WatchStream>),
}

impl Body {
    pub(crate) fn bytes(bytes: Bytes) -> Self {
        Self {
            kind: Kind::Bytes((!bytes.is_empty()).then_some(bytes)),
        }
    }

    pub(crate) fn watch(watch: WatchStream) -> Self {
        Self {
            kind: Kind::Watch(Box::new(watch)),
        }
    }

    /// The whole body, unless it is a watch, which never ends by itself.
    pub fn into_bytes(self) -> Option<Bytes> {
        match self.kind {
            Kind::Bytes(bytes) => Some(bytes.unwrap_or_default()),
            Kind::Watch(_) => None,
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.kind {
            Kind::Bytes(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Watch(watch) => watch
                .poll_next(context)
                .map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.kind, Kind::Bytes(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Bytes(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::Watch(_) => SizeHint::default(),
        }
    }
}
