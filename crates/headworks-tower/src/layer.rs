//! The layer.

use std::fmt;
use std::sync::Arc;

use headworks_agent::{Attributes, Limiter, Verdict};
use http::request::Parts;
use tower::Layer;

use crate::answer::Answers;
use crate::{AttributeList, Headworks};

/// What fills in the attributes of a request; a closure does.
pub trait Describe: for<'r> Fn(&'r Parts, &mut AttributeList<'r>) {}

impl<D> Describe for D where D: for<'r> Fn(&'r Parts, &mut AttributeList<'r>) {}

/// Holds services to the limits of a limiter. All clones, and all that they make, count together.
pub struct HeadworksLayer<D> {
    shared: Arc<Shared<D>>,
}

/// What all services of a layer have in common.
pub(crate) struct Shared<D> {
    pub(crate) limiter: Limiter,
    pub(crate) answers: Answers,
    describe: D,
}

impl<D: Describe> HeadworksLayer<D> {
    /// Requests are decided by `limiter`, by the attributes that `describe` pushes for each. It is called once a request, and
    /// should only look things up.
    pub fn new(limiter: Limiter, describe: D) -> Self {
        Self { shared: Arc::new(Shared { limiter, answers: Answers::default(), describe }) }
    }

    /// The same with other answers.
    #[must_use]
    pub fn answering(self, answers: Answers) -> Self
    where
        D: Clone,
    {
        let Shared { limiter, describe, .. } = &*self.shared;
        Self { shared: Arc::new(Shared { limiter: limiter.clone(), answers, describe: describe.clone() }) }
    }
}

impl<D: Describe> Shared<D> {
    pub(crate) fn decide(&self, request: &Parts) -> Verdict {
        let mut attributes = AttributeList::default();
        (self.describe)(request, &mut attributes);
        self.limiter.check(Attributes::new(&attributes.pairs()), None)
    }
}

impl<D> Clone for HeadworksLayer<D> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<D> fmt::Debug for HeadworksLayer<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeadworksLayer").field("answers", &self.shared.answers).finish_non_exhaustive()
    }
}

impl<S, D> Layer<S> for HeadworksLayer<D> {
    type Service = Headworks<S, D>;

    fn layer(&self, inner: S) -> Self::Service {
        Headworks::new(inner, self.shared.clone())
    }
}
