//! What holds for a parent after each of its ticks, whatever the scenario does to the fleet.

use std::time::Duration;

use headworks_core::bucket::BucketKey;
use headworks_core::children::{Bucket, Children, Held};
use headworks_core::invariant::{headroom_is_sound, shares_add_up};
use headworks_core::message::BucketNumber;

/// Stops the run at the first invariant that does not hold: the core is wrong then, and so is every figure.
pub(super) fn hold_for(children: &Children, now: Duration) {
    for (number, key, bucket) in children.buckets().iter() {
        if let Some(fault) = fault(children, number, bucket) {
            stop(key, now, &fault);
        }
    }
}

fn fault(children: &Children, number: BucketNumber, bucket: &Bucket) -> Option<String> {
    let headroom = bucket.headroom?;
    if !headroom_is_sound(headroom) {
        return Some(format!("a headroom of {headroom:?}"));
    }
    let demands = || children.iter().filter_map(|(_, child)| child.holds(number)).map(Held::demand);
    // The sum is kept as reports come. The law goes by the sum, and children admit by their own part of it.
    let whole = bucket.demand * headroom.value();
    (!shares_add_up(whole, demands(), headroom)).then(|| {
        // The sum of nothing is −0.
        let sum: f64 = 0.0 + demands().sum::<f64>();
        format!("children offer {sum}/s, and the sum that is kept of them is {}/s", bucket.demand)
    })
}

#[allow(clippy::panic, reason = "a run that goes on would give figures of a fleet that cannot be")]
fn stop(key: &BucketKey, now: Duration, fault: &str) -> ! {
    panic!("an invariant of the core is broken at {now:?}, bucket {key}: {fault}");
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use headworks_core::agent::Identity;
    use headworks_core::fleet::Fleet;
    use headworks_core::limits::parse;
    use headworks_core::message::Incarnation;
    use headworks_core::node::Node as _;
    use headworks_core::units::{Headroom, Moment};

    use super::*;

    fn fleet() -> Fleet {
        let (node, zone, region, version) = Default::default();
        let identity = Identity { node, incarnation: Incarnation(1), zone, region, version };
        let limits = Arc::new(parse("limits: [{name: all, rate: 100/second}]").unwrap());
        Fleet::new(&identity, limits, Duration::from_secs(60), Moment::default())
    }

    #[test]
    fn a_sum_that_no_child_accounts_for_is_a_fault() {
        let fleet = fleet();
        let (number, ..) = fleet.children().buckets().iter().next().unwrap();
        let of = |demand| {
            let mut bucket = Bucket::default();
            (bucket.demand, bucket.headroom) = (demand, Some(Headroom::of(100.0, 200.0)));
            bucket
        };
        assert_eq!(fault(fleet.children(), number, &of(0.0)), None);
        assert!(
            fault(fleet.children(), number, &of(5.0))
                .is_some_and(|fault| fault.contains("children offer 0/s"))
        );
    }
}
