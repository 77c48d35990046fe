//! A panic ends here: Envoy's threads know nothing of Rust's, and no request should suffer from one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Panics of the module since it was loaded.
pub static PANICS: AtomicU64 = AtomicU64::new(0);

/// Does something, and answers `fallback` if that panics. What it may leave half done are counts, and a limiter that takes
/// its thread's part anew.
pub fn or<R>(fallback: R, act: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| {
        PANICS.fetch_add(1, Relaxed);
        fallback
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_gives_the_fallback_and_is_counted() {
        let before = PANICS.load(Relaxed);
        assert_eq!(or("passes", || "refused"), "refused");
        assert_eq!(or("passes", || panic!("on purpose, by a test")), "passes");
        assert!(PANICS.load(Relaxed) > before);
    }
}
