//! Decides one request again and again: what `tests/e2e/instructions.rs` counts the instructions of.
//!
//! `decisions KIND COUNT`; kinds are those of `Kind`. Nothing but `measured` is counted.
#![allow(clippy::unwrap_used, reason = "whoever calls it wrongly is told so by a panic")]

use std::hint::black_box;
use std::sync::Arc;

use headworks_agent::{Agent, Attributes, Limiter};
use headworks_core::guard::Allowance;
use headworks_core::limits::parse;
use headworks_core::units::Headroom;
use tokio::sync::watch;

const ATTRIBUTES: [(&str, &str); 3] =
    [("service", "checkout"), ("tenant", "tenant-0000001"), ("route", "/v1/Pay")];
const BY_KEY: &str = "{name: each, per: [service, tenant, route], rate: 1000/second}";

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (kind, count) = (arguments.next().unwrap(), arguments.next().unwrap().parse().unwrap());
    match kind.as_str() {
        "reference" => reference(count),
        "prepared" => prepared(1, None, count),
        "prepared-guard" => prepared(1, Some(Allowance { rate: 1e9, depth: 1e9 }), count),
        "prepared-3" => prepared(3, None, count),
        "keyed" => keyed(true, count),
        "keyed-cold" => keyed(false, count),
        "check" => check(count),
        _ => panic!("no such kind: {kind}"),
    }
}

/// The loop that is counted. Never a part of its caller, so that it has a name.
#[inline(never)]
fn measured(count: usize, mut decide: impl FnMut() -> bool) {
    let mut admitted = 0_usize;
    for _ in 0..count {
        admitted += usize::from(black_box(decide()));
    }
    black_box(admitted);
}

/// What any decision has to do at least: hash a short text, draw a number, compare it, and count.
fn reference(count: usize) {
    let (mut state, mut counted) = (1_u64, 0_u64);
    measured(count, || {
        let text = black_box("of sixteen bytes");
        for byte in text.bytes() {
            state = (state ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        counted += 1;
        state >> 60 != black_box(0)
    });
    black_box(counted);
}

fn limiter(limits: &str) -> Limiter {
    let (_, limits) = watch::channel((1, Arc::new(parse(&format!("limits: [{limits}]")).unwrap())));
    Agent::builder("decisions", "here").standalone(limits).build().limiter()
}

/// One in ten is dropped.
fn headroom() -> Headroom {
    Headroom::new(0.9).unwrap()
}

fn prepared(limits: usize, guard: Option<Allowance>, count: usize) {
    let each: Vec<_> = (0..limits).map(|n| format!("{{name: l{n}, rate: 1000/second}}")).collect();
    let limiter = limiter(&each.join(", "));
    let mut prepared = limiter.prepare(&ATTRIBUTES);
    prepared.check(None);
    limiter.rehearse(headroom(), guard, true);
    measured(count, || black_box(&mut prepared).check(None).allowed);
}

fn keyed(hot: bool, count: usize) {
    let limiter = limiter(BY_KEY);
    let mut keyed = limiter.keyed(ATTRIBUTES.map(|(key, _)| key));
    let values = ATTRIBUTES.map(|(_, value)| value);
    keyed.check(values, None);
    limiter.rehearse(headroom(), None, hot);
    measured(count, || keyed.check(*black_box(&values), None).allowed);
}

fn check(count: usize) {
    let limiter = limiter(BY_KEY);
    limiter.check(Attributes::new(&ATTRIBUTES), None);
    limiter.rehearse(headroom(), None, true);
    measured(count, || limiter.check(Attributes::new(black_box(&ATTRIBUTES)), None).allowed);
}
