use super::*;
use crate::agent::InForce;
use crate::ladder::PlanState;
use crate::limits::{Limit, SilencePolicy};
use crate::message::{BucketNumber, Incarnation, Plan, PlanEntry};
use crate::testing::{identity, limit};

const HOLD: Duration = Duration::from_secs(60);

fn seconds(seconds: u64) -> Moment {
    Moment::after(Duration::from_secs(seconds))
}

fn agent() -> Agent {
    Agent::new(identity("agent"), HOLD, seconds(0))
}

fn limits() -> Vec<Limit> {
    vec![limit("banned", 0), limit("checkout", 1000)]
}

fn whole(name: &str) -> BucketKey {
    BucketKey::whole(name.into())
}

/// Half of 400/s on `checkout` was to be dropped, in a fleet of ten agents.
fn kept(age: Option<u64>, limits: Vec<Limit>) -> Kept {
    let key = whole("checkout");
    Kept {
        age: age.map(Duration::from_secs),
        view: View { aggregators: 1, agents: 10, demand: 2000.0 },
        generation: 3,
        limits: Arc::new(LimitSet::new(limits)),
        buckets: vec![KeptBucket { key, headroom: Headroom::new(0.5).unwrap(), demand: 400.0 }],
    }
}

fn restored(age: Option<u64>, limits: Vec<Limit>) -> Agent {
    let mut agent = agent();
    agent.restore(kept(age, limits), seconds(0));
    agent
}

/// What a bucket goes by, asked at this second.
fn in_force(agent: &mut Agent, name: &str, second: u64) -> InForce {
    let number = agent.open(&whole(name), seconds(second)).unwrap();
    agent.changes(seconds(second));
    agent.buckets.get(number).and_then(|bucket| bucket.in_force).unwrap()
}

fn plan(digest: crate::limits::Digest) -> Plan {
    Plan {
        incarnation: Incarnation(9),
        sequence: 1,
        heard: 0,
        age: Duration::ZERO,
        ttl: Duration::from_secs(5),
        interval: Duration::from_secs(1),
        spacing: Duration::from_millis(50),
        view: View { aggregators: 1, agents: 10, demand: 0.0 },
        digest,
        generation: 4,
        limits: None,
        names: vec![(BucketNumber(7), whole("checkout"))],
        shared: [PlanEntry { bucket: BucketNumber(7), headroom: Headroom::new(0.8).unwrap(), tokens: None }]
            .into(),
        private: [].into(),
        switch: crate::switch::Switch::default(),
        untracked: Vec::new(),
        forgets: true,
    }
}

#[test]
fn young_headrooms_hold_until_the_hold_ends() {
    let mut agent = restored(Some(20), limits());
    assert_eq!(agent.plan_state(seconds(0)), PlanState::Alone);
    let at_once = in_force(&mut agent, "checkout", 0);
    assert_eq!(at_once.headroom.value(), 0.5);
    assert_eq!(at_once.allowance.unwrap().rate, 300.0, "1.5 times its own part");
    assert_eq!(in_force(&mut agent, "checkout", 39).headroom.value(), 0.5);
    assert_eq!(agent.plan_state(seconds(40)), PlanState::Open);
    assert_eq!(in_force(&mut agent, "checkout", 50), InForce { headroom: Headroom::OPEN, allowance: None });
}

#[test]
fn of_old_headrooms_only_the_even_part_is_left_until_the_hold_is_over() {
    for age in [Some(60), Some(u64::MAX), None] {
        let mut agent = restored(age, limits());
        let rough = in_force(&mut agent, "checkout", 0);
        assert_eq!((rough.headroom, rough.allowance.unwrap().rate), (Headroom::OPEN, 100.0), "{age:?}");
        assert_eq!(in_force(&mut agent, "checkout", 59).allowance.unwrap().rate, 100.0);
        assert_eq!(in_force(&mut agent, "checkout", 70).allowance, None);
    }
}

#[test]
fn bans_hold_whatever_the_age() {
    for age in [Some(0), Some(1_000_000), None] {
        let mut agent = restored(age, limits());
        for second in [0, 59, 61, 10_000] {
            assert_eq!(in_force(&mut agent, "banned", second).headroom, Headroom::SHUT);
        }
    }
}

#[test]
fn limits_that_open_or_shut_in_silence_do_so() {
    for age in [Some(20), None] {
        let with = |policy| {
            let mut limit = limit("checkout", 1000);
            limit.on_silence.policy = policy;
            restored(age, vec![limit])
        };
        let open = in_force(&mut with(SilencePolicy::Open), "checkout", 10);
        assert_eq!(open, InForce { headroom: Headroom::OPEN, allowance: None });
        assert_eq!(in_force(&mut with(SilencePolicy::Closed), "checkout", 60).headroom, Headroom::SHUT);
    }
}

#[test]
fn a_parent_that_is_heard_ends_all_of_it() {
    for age in [Some(20), None] {
        let mut agent = restored(age, limits());
        assert_eq!(agent.hello().limits, Some(agent.limits().digest()), "the limits need not be sent");
        agent.attached("http://10.0.0.1:7100".into());
        agent.plan(plan(agent.limits().digest()), seconds(1));
        assert_eq!(agent.plan_state(seconds(1)), PlanState::Fresh);
        assert_eq!(in_force(&mut agent, "checkout", 1).headroom.value(), 0.8);
        let other = agent.open(&whole("banned"), seconds(1)).unwrap();
        assert_eq!(agent.buckets.get(other).unwrap().headroom, None);
    }
}

#[test]
fn what_is_kept_comes_back() {
    let mut before = restored(Some(20), limits());
    assert_eq!(before.keep(seconds(1)), None, "the file is still the newest");
    before.attached("http://10.0.0.1:7100".into());
    before.plan(plan(before.limits().digest()), seconds(1));
    let kept = before.keep(seconds(3)).unwrap();
    assert_eq!((kept.age, kept.generation, kept.view.agents), (Some(Duration::from_secs(2)), 4, 10));
    let mut after = agent();
    after.restore(kept, seconds(0));
    assert_eq!(in_force(&mut after, "checkout", 0).headroom.value(), 0.8);
}
