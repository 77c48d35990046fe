//! Requests of one shape: their keys are known beforehand, their values come with each.

use std::sync::Arc;
use std::sync::atomic::{Ordering::Acquire, Ordering::Relaxed};

use headworks_core::attributes::Attributes;

use super::forms::Known;
use super::local::Local;
use super::pipeline::{Paid, Pipeline};
use super::verdict::Verdict;
use super::{Inner, local};

/// Requests whose keys are known beforehand, such as `service`, `caller` and `procedure` in a proxy: where the limits find what they
/// look for is worked out once for each set of limits. It counts where no other thread does, so each thread needs one of its own,
/// which a clone is.
#[derive(Debug)]
pub struct Keyed<const N: usize> {
    limiter: Arc<Inner>,
    keys: [Arc<str>; N],
    /// What its thread would have.
    local: Local,
    /// What the form was worked out by: `local` may have later rules by the time of the next request.
    generation: u64,
    form: Known,
    /// It is decided as any other request: exact limits may have a say, or there are too many limits to look at each.
    plainly: bool,
}

impl<const N: usize> Keyed<N> {
    pub(super) fn new(limiter: &Arc<Inner>, keys: [Arc<str>; N]) -> Self {
        let local = Local::new(limiter);
        let mut keyed = Self {
            limiter: limiter.clone(),
            keys,
            local,
            generation: 0,
            form: Known::default(),
            plainly: true,
        };
        keyed.resolve();
        keyed
    }

    /// Decides a request with these values, as [`Limiter::check`](crate::Limiter::check) does.
    #[inline(always)]
    pub fn check(&mut self, values: [&str; N], asked: Option<u32>) -> Verdict {
        if self.generation != self.limiter.generation.load(Acquire)
            || self.generation != self.local.rules.generation
        {
            self.resolve();
        }
        if self.plainly || asked == Some(0) {
            return self.check_plainly(&values, asked);
        }
        let Self { limiter, local: Local { rules, hands, .. }, form, .. } = self;
        let pipeline = Pipeline::new(asked, limiter.shadow_all.load(Relaxed));
        let at = |place: usize| values.get(place).copied();
        let by_ratio = limiter.run_form(rules, form, &mut Paid::new(), hands, pipeline, at);
        Verdict::by_ratio(rules.generation, by_ratio)
    }

    #[cold]
    #[inline(never)]
    fn check_plainly(&mut self, values: &[&str; N], asked: Option<u32>) -> Verdict {
        let pairs: [_; N] = std::array::from_fn(|place| (&*self.keys[place], values[place]));
        self.limiter.check(&mut self.local, Attributes::new(&pairs), asked)
    }

    /// Works out where the limits in force find what they look for.
    #[cold]
    #[inline(never)]
    fn resolve(&mut self) {
        let rules = local::current(&mut self.local.rules, &self.limiter);
        self.generation = rules.generation;
        self.form = Known::of(rules, self.keys.iter().map(|key| &**key));
        self.plainly = !rules.exact().is_empty() || self.form.has_too_many();
    }
}

impl<const N: usize> Clone for Keyed<N> {
    fn clone(&self) -> Self {
        Self::new(&self.limiter, self.keys.clone())
    }
}
