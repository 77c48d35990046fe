//! A scrape: Prometheus text, and the values in it.

use super::http::get;

/// The metrics of a node at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Scrape(pub(crate) String);

impl Scrape {
    /// Scrapes the node with this admin address.
    #[track_caller]
    pub(crate) fn of(admin: &str) -> Self {
        let answer = get(admin, "/metrics").unwrap_or_else(|error| panic!("cannot scrape {admin}: {error}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        Scrape(answer.body)
    }

    /// The value of a series given with its labels, as in `headworks_offered_total{limit="checkout"}`.
    fn find(&self, series: &str) -> Option<f64> {
        let is = |line: &&str| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' '));
        self.0.lines().find(is)?.rsplit(' ').next()?.parse().ok()
    }

    #[track_caller]
    pub(crate) fn value(&self, series: &str) -> f64 {
        self.find(series).unwrap_or_else(|| panic!("no {series} in\n{}", self.0))
    }

    /// The value of a metric for one limit.
    #[track_caller]
    pub(crate) fn of_limit(&self, metric: &str, limit: &str) -> f64 {
        self.value(&format!("{metric}{{limit=\"{limit}\"}}"))
    }

    /// Which of the plan states is 1.
    pub(crate) fn plan_state(&self) -> String {
        let is = |state: &&str| self.find(&format!("headworks_plan_state{{state=\"{state}\"}}")) == Some(1.0);
        let states: Vec<&str> = ["none", "fresh", "alone", "open"].into_iter().filter(is).collect();
        states.join("+")
    }
}
