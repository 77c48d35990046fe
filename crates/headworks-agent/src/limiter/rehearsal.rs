//! A limiter whose ratios no control plane sets, for what measures decisions. Not a feature of the crate: tests and benchmarks would
//! build all of it a second time.

use headworks_core::agent::InForce;
use headworks_core::guard::Allowance;
use headworks_core::units::Headroom;

use super::Limiter;

impl Limiter {
    /// Puts a headroom and an allowance in force in every bucket that there is, as a plan would; `hot` says whether threads count
    /// for themselves there. It is no part of what the crate promises.
    #[doc(hidden)]
    pub fn rehearse(&self, headroom: Headroom, allowance: Option<Allowance>, hot: bool) {
        let (ledger, now) = (&self.inner.ledger, self.inner.bell.now());
        ledger.for_each(|number, record| {
            record.set(InForce { headroom, allowance }, now);
            if hot {
                ledger.heat(number);
            }
        });
    }
}
