//! The service.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower::{Service, ServiceExt};

use crate::fields::Fields;
use crate::future::ResponseFuture;
use crate::layer::{Describe, Shared};

/// A service that is held to limits.
///
/// It is ready at all times, since refusing takes nobody else: while the service within is busy, and refusals matter most, they
/// are given at once. A request that passes is handed in only when the service within is ready, and waits for that in its future.
/// An error of its readiness is one of this service, too.
pub struct Headworks<S, D> {
    inner: S,
    /// It said so, and has taken no request since.
    is_ready: bool,
    shared: Arc<Shared<D>>,
}

impl<S, D> Headworks<S, D> {
    pub(crate) fn new(inner: S, shared: Arc<Shared<D>>) -> Self {
        Self { inner, is_ready: false, shared }
    }
}

impl<S: Clone, D> Clone for Headworks<S, D> {
    fn clone(&self) -> Self {
        // Readiness is that of one service: what it has reserved for its next request is not the clone's.
        Self::new(self.inner.clone(), self.shared.clone())
    }
}

impl<S: fmt::Debug, D> fmt::Debug for Headworks<S, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Headworks").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S, D, B, R> Service<Request<B>> for Headworks<S, D>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    D: Describe,
    R: Default,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = ResponseFuture<S, B, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        if !self.is_ready {
            match self.inner.poll_ready(cx) {
                Poll::Ready(Ok(())) => self.is_ready = true,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {}
            }
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (request, body) = request.into_parts();
        let verdict = self.shared.decide(&request);
        let Shared { limiter, answers, .. } = &*self.shared;
        if !verdict.allowed {
            return ResponseFuture::refused(answers.refusal(limiter, &verdict, &request.headers));
        }
        let fields = answers.rate_limit_fields.then(|| Fields::of(limiter, &verdict)).flatten();
        let request = Request::from_parts(request, body);
        if std::mem::take(&mut self.is_ready) {
            return ResponseFuture::admitted(self.inner.call(request), fields);
        }
        // The one that was asked has its place in whatever queue there is.
        let next = self.inner.clone();
        ResponseFuture::waiting(std::mem::replace(&mut self.inner, next).oneshot(request), fields)
    }
}
