//! What was answered over gRPC, by service and code.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The answers of each service.
#[derive(Debug, Default)]
pub(crate) struct GrpcCounts {
    pub(super) rls: Answers,
    pub(super) ext_authz: Answers,
}

/// The answers of one service.
#[derive(Debug, Default)]
pub(super) struct Answers {
    ok: AtomicU64,
    over_limit: AtomicU64,
    error: AtomicU64,
}

impl Answers {
    pub(super) fn count(&self, allowed: bool) {
        let counter = if allowed { &self.ok } else { &self.over_limit };
        counter.fetch_add(1, Relaxed);
    }

    /// A request that makes no sense, or that this agent cannot answer.
    pub(super) fn count_error(&self) {
        self.error.fetch_add(1, Relaxed);
    }
}

impl GrpcCounts {
    /// Service, code and how many.
    pub(crate) fn read(&self) -> Vec<(&'static str, &'static str, u64)> {
        let of = |service, answers: &Answers| {
            [("ok", &answers.ok), ("over_limit", &answers.over_limit), ("error", &answers.error)]
                .map(|(code, count)| (service, code, count.load(Relaxed)))
        };
        [of("rls", &self.rls), of("ext_authz", &self.ext_authz)].concat()
    }
}
