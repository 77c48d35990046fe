//! What a request becomes.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use pin_project_lite::pin_project;
use tower::Service;
use tower::util::Oneshot;

use crate::fields::Fields;

pin_project! {
    /// The response of the service within, or a refusal, which is there at once.
    pub struct ResponseFuture<S: Service<Request<B>>, B, R> {
        #[pin]
        state: State<S, B, R>,
        fields: Option<Fields>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S: Service<Request<B>>, B, R> {
        Refused { response: Option<Response<R>> },
        Admitted { #[pin] future: S::Future },
        // The service within is not ready yet.
        Waiting { #[pin] future: Oneshot<S, Request<B>> },
    }
}

impl<S: Service<Request<B>>, B, R> ResponseFuture<S, B, R> {
    pub(crate) fn refused(response: Response<R>) -> Self {
        Self { state: State::Refused { response: Some(response) }, fields: None }
    }

    pub(crate) fn admitted(future: S::Future, fields: Option<Fields>) -> Self {
        Self { state: State::Admitted { future }, fields }
    }

    pub(crate) fn waiting(future: Oneshot<S, Request<B>>, fields: Option<Fields>) -> Self {
        Self { state: State::Waiting { future }, fields }
    }
}

impl<S, B, R> Future for ResponseFuture<S, B, R>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Output = Result<Response<R>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = match this.state.project() {
            StateProjection::Refused { response } => match response.take() {
                Some(response) => response,
                // As every future that is asked again after its end.
                None => return Poll::Pending,
            },
            StateProjection::Admitted { future } => ready!(future.poll(cx))?,
            StateProjection::Waiting { future } => ready!(future.poll(cx))?,
        };
        if let Some(fields) = this.fields.take() {
            fields.put_into(response.headers_mut());
        }
        Poll::Ready(Ok(response))
    }
}

impl<S: Service<Request<B>>, B, R> fmt::Debug for ResponseFuture<S, B, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
