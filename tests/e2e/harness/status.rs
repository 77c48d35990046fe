//! A node's status, as `/status` serves it.

use serde_json::Value;

use super::http::get;

/// The status of a node at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Status(pub(crate) Value);

impl Status {
    /// Asks the node with this admin address; nothing while it is away.
    pub(crate) fn of(admin: &str) -> Option<Self> {
        let answer = get(admin, "/status").ok().filter(|answer| answer.status == 200)?;
        serde_json::from_str(&answer.body).ok().map(Status)
    }

    /// fresh, alone, open or none.
    pub(crate) fn state(&self) -> &str {
        self.0["state"].as_str().unwrap_or("missing")
    }

    /// Agents at or below the children.
    pub(crate) fn agents(&self) -> u64 {
        let children = self.0["children"].as_array().into_iter().flatten();
        children.filter_map(|child| child["agents"].as_u64()).sum()
    }

    pub(crate) fn generation(&self) -> u64 {
        self.0["limits_generation"].as_u64().unwrap_or(0)
    }

    /// What is told of one limit.
    pub(crate) fn limit(&self, name: &str) -> Option<&Value> {
        self.0["limits"].as_array()?.iter().find(|limit| limit["name"] == name)
    }

    /// Its rate, if it is known and has one.
    pub(crate) fn rate(&self, name: &str) -> Option<f64> {
        self.limit(name)?["rate"].as_f64()
    }
}
