//! A decision allocates nothing, however the request comes, and whether its bucket is hot.

use allocation_counter::measure;
use headworks_core::guard::Allowance;

use super::*;

const BY_KEY: &str = "limits: [{name: each, per: [service, tenant, route], rate: 1000/second}]";
const TWO: &str = "limits: [{name: all, rate: 1000/second}, {name: more, rate: 1000/second, mode: shadow}]";
const ATTRIBUTES: [(&str, &str); 3] =
    [("service", "checkout"), ("tenant", "tenant-0000001"), ("route", "/v1/Pay")];
/// Many more than a guard has tokens for, so that some find none and read the clock.
const REQUESTS: usize = 10_000;

fn allocates_nothing(what: &str, mut decide: impl FnMut() -> bool) {
    let mut admitted = 0;
    // The first makes the cells in which a thread counts for itself.
    decide();
    let counted = measure(|| admitted = (0..REQUESTS).filter(|_| decide()).count());
    assert!((1..REQUESTS).contains(&admitted), "{what}: {admitted} admitted");
    assert_eq!(counted.count_total, 0, "{what}: {counted:?}");
}

#[test]
fn no_decision_allocates() {
    let headroom = Headroom::new(0.9).unwrap();
    for hot in [false, true] {
        for guard in [None, Some(Allowance { rate: 1.0, depth: 100.0 })] {
            let what = |kind: &str| format!("{kind}, hot: {hot}, {guard:?}");
            let by_key = limiter(BY_KEY);
            by_key.check(Attributes::new(&ATTRIBUTES), None);
            let mut keyed = by_key.keyed(ATTRIBUTES.map(|(key, _)| key));
            let values = ATTRIBUTES.map(|(_, value)| value);
            keyed.check(values, None);
            by_key.rehearse(headroom, guard, hot);
            allocates_nothing(&what("check"), || by_key.check(Attributes::new(&ATTRIBUTES), None).allowed);
            // Full again, for who comes next.
            by_key.rehearse(headroom, None, hot);
            by_key.rehearse(headroom, guard, hot);
            allocates_nothing(&what("keyed"), || keyed.check(values, None).allowed);

            let whole = limiter(TWO);
            let mut prepared = whole.prepare(&ATTRIBUTES);
            prepared.check(None);
            whole.rehearse(headroom, guard, hot);
            allocates_nothing(&what("prepared"), || prepared.check(None).allowed);
        }
    }
}
