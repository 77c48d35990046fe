//! What a proxy is told to do with the requests of a bucket.

use crate::units::Moment;

/// Time at the assigned rate that a bucket of tokens saves up. A proxy starts each new bucket full, so this much passes
/// beyond the share whenever that has moved; with less, a share would be lost to gaps between requests.
const BURST_SECONDS: f64 = 0.25;
/// Tokens that thin traffic may save up, of which a quarter of a second holds none: with 4, twice the share loses 3 % of it to
/// chance.
const LEAST_BURST: f64 = 4.0;
/// How far a share may be from the one that was assigned until it is worth another bucket, which starts full again.
const NEAR: f64 = 0.03;
/// Seconds over which a share is measured: chance moves it by the root of what comes in them.
const MEASURED_OVER: f64 = 5.0;
/// How far it may be for longer than that, when chance would explain more: shares of all proxies may be off in the same way.
const NEAR_FOR_LONG: f64 = 0.2;
/// Times its first tokens that a bucket has to let pass until it may be changed for that: else slow ones would pass more tokens
/// for being changed than by their rate.
const SETTLED: f64 = 10.0;
/// Longest time in which whole tokens are looked for that make up the rate.
const MOST_SECONDS: u32 = 10;
/// How far whole tokens in whole seconds may be off the rate until a longer time is tried.
const ROUNDING: f64 = 0.01;
/// The slowest bucket: a token a year.
const SLOWEST: f64 = 365.0 * 86_400.0;

/// What a proxy does with requests until it is told otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Lets them pass, since no limit drops any.
    AllowAll,
    /// Refuses them.
    DenyAll,
    /// Lets them pass while there are tokens.
    Tokens(Tokens),
}

/// A bucket of tokens, one for each request. It starts full.
///
/// Seconds are whole: Envoy cuts off fractions, and takes half a second for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// Most that are saved up, at least 1.
    pub most: u32,
    /// Tokens that come in `seconds`, little by little; at least 1.
    pub per_fill: u32,
    /// At least 1.
    pub seconds: u32,
}

/// What a proxy may let pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Share {
    All,
    /// Requests a second.
    Rate(f64),
}

/// What a proxy was told last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Told {
    pub(super) strategy: Strategy,
    share: Share,
    at: Moment,
}

impl Told {
    /// What to tell of a share. As long as it is near what was told before, that stays: the tokens go on as they are.
    pub(super) fn next(before: Option<Told>, share: Share, now: Moment) -> Told {
        match before {
            Some(before) if before.is_near(share, now) => before,
            before => {
                let strategy = share.strategy().told_apart(before.map(|told| told.strategy));
                Told { strategy, share, at: now }
            }
        }
    }

    fn is_near(self, share: Share, now: Moment) -> bool {
        match (share, self.share) {
            (Share::Rate(share), Share::Rate(before)) if share > 0.0 && before > 0.0 => {
                let chance = (before / MEASURED_OVER).sqrt();
                let chance =
                    if self.is_settled(before, now) { chance.min(NEAR_FOR_LONG * before) } else { chance };
                (share - before).abs() <= chance.max(NEAR * before)
            }
            (share, before) => share == before,
        }
    }

    fn is_settled(self, rate: f64, now: Moment) -> bool {
        let Strategy::Tokens(tokens) = self.strategy else { return true };
        now.since(self.at).as_secs_f64() * rate >= SETTLED * f64::from(tokens.most)
    }
}

impl Share {
    fn strategy(self) -> Strategy {
        match self {
            Share::All => Strategy::AllowAll,
            Share::Rate(rate) if rate <= 0.0 => Strategy::DenyAll,
            Share::Rate(rate) if rate >= f64::from(u32::MAX) => Strategy::AllowAll,
            Share::Rate(rate) => Strategy::Tokens(Tokens::of(rate)),
        }
    }
}

impl Strategy {
    /// Envoy does not see that a bucket has changed if its numbers are the same but for the seconds.
    fn told_apart(self, before: Option<Strategy>) -> Strategy {
        match (self, before) {
            (Strategy::Tokens(now), Some(Strategy::Tokens(before)))
                if now.seconds != before.seconds
                    && (now.most, now.per_fill) == (before.most, before.per_fill) =>
            {
                Strategy::Tokens(Tokens { most: now.most + 1, ..now })
            }
            (now, _) => now,
        }
    }
}

impl Tokens {
    /// The bucket of a rate above 0, in requests a second: whole tokens in the shortest whole time that is near enough.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounded, and nothing is below 0"
    )]
    fn of(rate: f64) -> Self {
        let most = (rate * BURST_SECONDS).ceil().max(rate.ceil().min(LEAST_BURST)) as u32;
        let off = |seconds: &u32| {
            let tokens = rate * f64::from(*seconds);
            (tokens.round().max(1.0) / tokens - 1.0).abs()
        };
        let near = (1..=MOST_SECONDS).find(|seconds| off(seconds) <= ROUNDING);
        let nearest = || (1..=MOST_SECONDS).min_by(|a, b| off(a).total_cmp(&off(b))).unwrap_or(1);
        let seconds = near.unwrap_or_else(nearest);
        let tokens = (rate * f64::from(seconds)).round();
        if tokens < 1.0 {
            return Self { most, per_fill: 1, seconds: rate.recip().ceil().min(SLOWEST) as u32 };
        }
        Self { most, per_fill: tokens as u32, seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(rate: f64) -> Tokens {
        match Share::Rate(rate).strategy() {
            Strategy::Tokens(tokens) => tokens,
            other => panic!("{rate}: {other:?}"),
        }
    }

    #[test]
    fn tokens_in_whole_seconds_make_up_the_rate() {
        for tenths in 1..20_000_u32 {
            let rate = f64::from(tenths) / 10.0;
            let Tokens { most, per_fill, seconds } = tokens(rate);
            let made = f64::from(per_fill) / f64::from(seconds);
            assert!((made / rate - 1.0).abs() < 0.08, "{rate}: {per_fill} in {seconds} s");
            assert!(
                rate < 10.0 || (made / rate - 1.0).abs() <= ROUNDING,
                "{rate}: {per_fill} in {seconds} s"
            );
            assert!(most >= 1 && f64::from(most) <= 4.0_f64.max(rate / 4.0 + 1.0), "{rate}: {most}");
        }
    }

    #[test]
    fn slow_rates_have_one_token_in_many_seconds() {
        assert_eq!(tokens(0.01), Tokens { most: 1, per_fill: 1, seconds: 100 });
        assert_eq!(tokens(1.0 / 300.5), Tokens { most: 1, per_fill: 1, seconds: 301 });
        assert_eq!(tokens(1e-30).seconds, 31_536_000);
    }

    #[test]
    fn nothing_is_refused_and_no_limit_at_all_are_not_buckets() {
        assert_eq!(Share::Rate(0.0).strategy(), Strategy::DenyAll);
        assert_eq!(Share::All.strategy(), Strategy::AllowAll);
        assert_eq!(Share::Rate(1e12).strategy(), Strategy::AllowAll);
    }

    fn told(rate: f64) -> Told {
        Told::next(None, Share::Rate(rate), Moment::default())
    }

    /// What is told of a share so many seconds after the one before; nothing, if that stays.
    fn moves(before: f64, share: f64, seconds: u64) -> Option<Strategy> {
        let now = Moment::after(std::time::Duration::from_secs(seconds));
        let next = Told::next(Some(told(before)), Share::Rate(share), now);
        (next != told(before)).then_some(next.strategy)
    }

    #[test]
    fn a_share_that_moves_by_chance_keeps_its_bucket() {
        for (before, share) in [(400.0, 410.0), (400.0, 389.0), (4.0, 4.8), (0.2, 0.3)] {
            assert_eq!(moves(before, share, 5), None, "{before} → {share}");
        }
        for (before, share) in [(400.0, 420.0), (4.0, 6.0), (4.0, 0.0), (0.0, 0.1)] {
            assert_eq!(moves(before, share, 5), Some(Share::Rate(share).strategy()), "{before} → {share}");
        }
        assert_eq!(Told::next(Some(told(400.0)), Share::All, Moment::default()).strategy, Strategy::AllowAll);
    }

    #[test]
    fn a_slow_share_moves_when_another_token_matters_little() {
        assert_eq!(moves(0.05, 0.02, 60), None);
        assert_eq!(
            moves(0.05, 0.02, 200),
            Some(Strategy::Tokens(Tokens { most: 2, per_fill: 1, seconds: 50 }))
        );
        assert_eq!(moves(0.05, 0.045, 2000), None);
    }

    #[test]
    fn a_share_does_not_creep_away_from_its_bucket() {
        let creep =
            |told, step| Told::next(Some(told), Share::Rate(100.0 + f64::from(step)), Moment::default());
        assert_ne!((1..=10).fold(told(100.0), creep).strategy, told(100.0).strategy);
    }

    #[test]
    fn another_time_to_fill_comes_with_another_number() {
        let (slow, slower) = (Share::Rate(1.0 / 20.0).strategy(), Share::Rate(1.0 / 200.0).strategy());
        assert_eq!(
            slower.told_apart(Some(slow)),
            Strategy::Tokens(Tokens { most: 2, per_fill: 1, seconds: 200 })
        );
        assert_eq!(slower.told_apart(Some(slower)), slower);
        assert_eq!(slower.told_apart(Some(Strategy::DenyAll)), slower);
    }
}
