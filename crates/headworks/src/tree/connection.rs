//! A connection that ends by itself when nobody says hello on it.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tonic::transport::server::Connected;

use super::gate::INTRODUCTION;
use super::visitor::Visitor;

type Io = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// What children are served over.
pub(super) struct Connection {
    io: Io,
    visitor: Arc<Visitor>,
    deadline: Pin<Box<Sleep>>,
}

impl Connection {
    pub(super) fn new(io: Io, visitor: Arc<Visitor>, deadline: Instant) -> Self {
        Self { io, visitor, deadline: Box::pin(sleep_until(deadline)) }
    }

    /// An error once it has to end. The timer wakes the task that reads and writes, which so comes by here.
    fn may_go_on(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.visitor.is_doomed() {
            return Err(io::Error::new(ErrorKind::ConnectionAborted, "too many streams"));
        }
        while self.deadline.as_mut().poll(context).is_ready() {
            if !self.visitor.is_attached() {
                self.visitor.note_silence();
                return Err(io::Error::new(ErrorKind::TimedOut, "no hello in time"));
            }
            self.deadline.as_mut().reset(Instant::now() + INTRODUCTION);
        }
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.visitor.leave();
    }
}

impl Connected for Connection {
    type ConnectInfo = Arc<Visitor>;

    fn connect_info(&self) -> Arc<Visitor> {
        self.visitor.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.may_go_on(context)?;
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.may_go_on(context)?;
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.may_go_on(context)?;
        Pin::new(&mut self.io).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.may_go_on(context)?;
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_shutdown(context))?;
        Poll::Ready(Ok(()))
    }
}
