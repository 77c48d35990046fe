//! The configurations that are compared.

/// One way to run a fleet.
#[derive(Debug)]
pub(super) struct Configuration {
    /// What tables call it.
    pub(super) name: &'static str,
    /// The controller's `--report-spacing`.
    pub(super) report_spacing: &'static str,
    /// A line of the limit that is not a default, or nothing.
    guard: &'static str,
}

/// As limits files have it, and without what hastens the answer to a surge: nodes report each second, and a limit does
/// nothing until its controller has spoken.
pub(super) const CONFIGURATIONS: [Configuration; 2] = [
    Configuration { name: "early reports and guard", report_spacing: "50ms", guard: "" },
    Configuration { name: "neither", report_spacing: "1s", guard: "    surge_guard: off\n" },
];

impl Configuration {
    /// A limits file of one limit, `api`, that every request meets.
    pub(super) fn limits(&self, rate: u32) -> String {
        format!("limits:\n  - name: api\n    rate: {rate}/second\n{}", self.guard)
    }
}
