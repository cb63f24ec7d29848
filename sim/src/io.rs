//! hyper's I/O over tokio's streams. A flush without a write never reaches the stream: to the simulated
//! network each flush is a message, and two hyper ends would answer each other's empty ones for ever.

use hyper::rt::ReadBufCursor;
use std::io::Result;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const CHUNK: usize = 2048;

/// A stream for hyper.
pub(crate) struct Io<S> {
    stream: S,
    /// Filled by each read; kept, so that it is made only once.
    chunk: Box<[u8]>,
    unflushed: bool,
}

impl<S> Io<S> {
    pub(crate) fn new(stream: S) -> Io<S> {
        Io { stream, chunk: vec![0; CHUNK].into(), unflushed: false }
    }
}

impl<S: AsyncRead + Unpin> hyper::rt::Read for Io<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut out: ReadBufCursor<'_>,
    ) -> Poll<Result<()>> {
        let this = &mut *self;
        let room = out.remaining().min(CHUNK);
        let mut buf = ReadBuf::new(&mut this.chunk[..room]);
        ready!(Pin::new(&mut this.stream).poll_read(cx, &mut buf))?;
        out.put_slice(buf.filled());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> hyper::rt::Write for Io<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        self.unflushed = true;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if self.unflushed {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
