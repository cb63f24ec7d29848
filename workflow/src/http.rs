//! hyper's I/O over tokio's streams: counts what leaves, and flushes only what was written.

use hyper::rt::ReadBufCursor;
use std::io::Result;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const CHUNK: usize = 4096;

/// tokio's timer for hyper.
pub struct Timer;

struct Sleep(Pin<Box<tokio::time::Sleep>>);

impl std::future::Future for Sleep {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

impl hyper::rt::Sleep for Sleep {}

impl hyper::rt::Timer for Timer {
    fn sleep(&self, duration: std::time::Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(Sleep(Box::pin(tokio::time::sleep(duration))))
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        // In the simulator the two kinds of instant are one.
        #[cfg_attr(madsim, expect(clippy::useless_conversion, reason = "they differ in the plain build"))]
        let deadline = deadline.into();
        Box::pin(Sleep(Box::pin(tokio::time::sleep_until(deadline))))
    }
}

/// A stream for hyper. Its counter proves when nothing has left; an empty flush never reaches the stream
/// below.
pub struct Io<S> {
    stream: S,
    /// Filled by each read; kept, so that it is made only once.
    chunk: Box<[u8]>,
    unflushed: bool,
    written: Arc<AtomicU64>,
}

impl<S> Io<S> {
    /// Wraps a stream.
    pub fn new(stream: S) -> Io<S> {
        Io::counting(stream, Arc::default())
    }

    /// The stream that was wrapped.
    pub fn into_inner(self) -> S {
        self.stream
    }

    /// Adds the bytes that the stream below has taken to `written`.
    pub(crate) fn counting(stream: S, written: Arc<AtomicU64>) -> Io<S> {
        Io { stream, chunk: vec![0; CHUNK].into(), unflushed: false, written }
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
        let taken = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.unflushed = true;
        self.written.fetch_add(taken as u64, Ordering::Relaxed);
        Poll::Ready(Ok(taken))
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
