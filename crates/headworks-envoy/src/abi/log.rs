//! What the agent has to say, in Envoy's log.

use std::io;

use tracing::{Level, Metadata};
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;

use super::raw::{self, LogLevel};

/// Of panics, so many are told one by one: there may be one for each request.
const PANICS_TOLD: u64 = 100;

/// From now on the module's events and panics go to Envoy's log, as loud as that is.
pub(super) fn begin() {
    let lines = tracing_subscriber::fmt::layer()
        .without_time()
        .with_level(false)
        .with_target(false)
        .with_ansi(false)
        .with_writer(EnvoyLog);
    let ours =
        dynamic_filter_fn(|event, _| event.target().starts_with("headworks") && is_heard(event.level()));
    // It fails where the module is loaded a second time, and is heard already.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(ours).with(lines));
    std::panic::set_hook(Box::new(|panic| {
        static TOLD: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        if TOLD.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < PANICS_TOLD {
            tracing::error!("a fault in the module; what it was about to decide passes: {panic}");
        }
    }));
}

/// Writes each event as one line.
struct EnvoyLog;

struct Line(LogLevel);

impl<'w> MakeWriter<'w> for EnvoyLog {
    type Writer = Line;

    fn make_writer(&'w self) -> Line {
        Line(LogLevel::Info)
    }

    fn make_writer_for(&'w self, event: &Metadata<'_>) -> Line {
        Line(level(*event.level()))
    }
}

impl io::Write for Line {
    /// Events come in one piece. Text from outside must not begin lines of its own.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
        let line: String = "headworks: ".chars().chain(text.trim_end().chars()).map(escaped).collect();
        // SAFETY: a text that lives during the call.
        unsafe { raw::envoy_dynamic_module_callback_log(self.0, raw::Buffer::of(&line)) };
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn is_heard(of: &Level) -> bool {
    // SAFETY: any thread may ask, at any time.
    unsafe { raw::envoy_dynamic_module_callback_log_enabled(level(*of)) }
}

fn level(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        Level::DEBUG => LogLevel::Debug,
        Level::TRACE => LogLevel::Trace,
    }
}
