//! The hooks that Envoy calls. None of them lets a panic out.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::host::{Bell, Host, Statistic, Stream, slice};
use super::{log, raw};
use crate::config::Config;
use crate::filter::Filter;
use crate::guard::{self, PANICS};
use crate::stats::Standing;
use crate::uplink;

/// A configuration while Envoy has it. Its address is also that of each of its filters: a filter keeps nothing of a request.
struct Configured {
    filter: Filter,
    statistics: Option<Statistics>,
    bell: Arc<Bell>,
}

/// The module is loaded, on Envoy's main thread.
#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_program_init() -> *const c_char {
    guard::or(ptr::null(), || {
        log::begin();
        // SAFETY: asked on the main thread.
        uplink::begin(unsafe { raw::envoy_dynamic_module_callback_is_validation_mode() });
        raw::VERSION.as_ptr()
    })
}

/// A configuration comes to be, on Envoy's main thread. Null refuses it, and Envoy goes on by the one it had.
#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_config_new(
    host: raw::HostConfig,
    _name: raw::Buffer,
    config: raw::Buffer,
) -> *const c_void {
    guard::or(ptr::null(), || {
        // SAFETY: Envoy's, and good during the call.
        let (host, config) = unsafe { (Host::new(host), slice(config)) };
        match configured(host, config) {
            Ok(configured) => Box::into_raw(Box::new(configured)).cast_const().cast(),
            Err(error) => {
                tracing::error!("{error}");
                ptr::null()
            }
        }
    })
}

fn configured(host: Host, config: &[u8]) -> Result<Configured, Box<dyn std::error::Error>> {
    let config = Config::parse(config, |name| std::env::var(name).ok())?;
    let filter = Filter::new(config)?;
    let statistics = Statistics::define(host);
    if statistics.is_none() {
        tracing::warn!(
            "Envoy defines no statistics for this filter: it limits all the same, and nothing is told of it"
        );
    }
    let bell = Arc::new(Bell::of(host));
    let rung = bell.clone();
    filter.uplink().announce_by(Box::new(move || rung.ring()));
    tracing::info!(agent = filter.uplink().id(), "a filter is configured");
    Ok(Configured { filter, statistics, bell })
}

/// Its end, after that of all its filters.
#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_config_destroy(config: *const c_void) {
    guard::or((), || {
        // SAFETY: it was made above, by a box, and Envoy forgets it now.
        let configured = unsafe { Box::from_raw(config.cast::<Configured>().cast_mut()) };
        configured.bell.silence();
    });
}

/// Statistics are to be told, on Envoy's main thread.
#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_config_scheduled(
    host: raw::HostConfig,
    config: *const c_void,
    _event: u64,
) {
    guard::or((), || {
        // SAFETY: Envoy's, and good during the call; and what was made above, which is not destroyed yet.
        let (host, configured) = unsafe { (Host::new(host), &*config.cast::<Configured>()) };
        if let Some(statistics) = &configured.statistics {
            statistics.tell(host, &configured.filter);
        }
    });
}

/// A filter for one request: its configuration.
#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_new(
    config: *const c_void,
    _filter: raw::HostFilter,
) -> *const c_void {
    config
}

/// A request has come: it is decided here.
#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_request_headers(
    filter: raw::HostFilter,
    config: *const c_void,
    _is_all: bool,
) -> u32 {
    guard::or(raw::CONTINUE, || {
        // SAFETY: Envoy's, and good during the call; and what was made above, which outlives its filters.
        let (stream, configured) = unsafe { (Stream::new(filter), &*config.cast::<Configured>()) };
        match configured.filter.decide(&stream) {
            None => raw::CONTINUE,
            Some(refusal) => {
                stream.answer(&refusal);
                raw::STOP
            }
        }
    })
}

/// Hooks that Envoy looks for, and that have nothing to do here: the request, or its answer, goes on.
macro_rules! nothing_to_do {
    ($($hook:ident($($of:ty),*) $(-> $answer:ty = $value:expr)?;)*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $hook($(_: $of),*) $(-> $answer)? { $($value)? })*
    };
}

nothing_to_do! {
    envoy_dynamic_module_on_http_filter_request_body(raw::HostFilter, *const c_void, bool) -> u32 = raw::CONTINUE;
    envoy_dynamic_module_on_http_filter_request_trailers(raw::HostFilter, *const c_void) -> u32 = raw::CONTINUE;
    envoy_dynamic_module_on_http_filter_response_headers(raw::HostFilter, *const c_void, bool) -> u32 = raw::CONTINUE;
    envoy_dynamic_module_on_http_filter_response_body(raw::HostFilter, *const c_void, bool) -> u32 = raw::CONTINUE;
    envoy_dynamic_module_on_http_filter_response_trailers(raw::HostFilter, *const c_void) -> u32 = raw::CONTINUE;
    envoy_dynamic_module_on_http_filter_local_reply(raw::HostFilter, *const c_void, u32, raw::Buffer, bool) -> u32 = raw::CONTINUE;
    envoy_dynamic_module_on_http_filter_stream_complete(raw::HostFilter, *const c_void);
    envoy_dynamic_module_on_http_filter_destroy(*const c_void);
    envoy_dynamic_module_on_http_filter_scheduled(raw::HostFilter, *const c_void, u64);
    envoy_dynamic_module_on_http_filter_downstream_above_write_buffer_high_watermark(raw::HostFilter, *const c_void);
    envoy_dynamic_module_on_http_filter_downstream_below_write_buffer_low_watermark(raw::HostFilter, *const c_void);
    // The module asks nobody else, so nothing of these ever comes.
    envoy_dynamic_module_on_http_filter_http_callout_done(raw::HostFilter, *const c_void, u64, u32, *const c_void, usize, *const c_void, usize);
    envoy_dynamic_module_on_http_filter_http_stream_headers(raw::HostFilter, *const c_void, u64, *const c_void, usize, bool);
    envoy_dynamic_module_on_http_filter_http_stream_data(raw::HostFilter, *const c_void, u64, *const c_void, usize, bool);
    envoy_dynamic_module_on_http_filter_http_stream_trailers(raw::HostFilter, *const c_void, u64, *const c_void, usize);
    envoy_dynamic_module_on_http_filter_http_stream_complete(raw::HostFilter, *const c_void, u64);
    envoy_dynamic_module_on_http_filter_http_stream_reset(raw::HostFilter, *const c_void, u64, u32);
    envoy_dynamic_module_on_http_filter_config_http_callout_done(raw::HostConfig, *const c_void, u64, u32, *const c_void, usize, *const c_void, usize);
    envoy_dynamic_module_on_http_filter_config_http_stream_headers(raw::HostConfig, *const c_void, u64, *const c_void, usize, bool);
    envoy_dynamic_module_on_http_filter_config_http_stream_data(raw::HostConfig, *const c_void, u64, *const c_void, usize, bool);
    envoy_dynamic_module_on_http_filter_config_http_stream_trailers(raw::HostConfig, *const c_void, u64, *const c_void, usize);
    envoy_dynamic_module_on_http_filter_config_http_stream_complete(raw::HostConfig, *const c_void, u64);
    envoy_dynamic_module_on_http_filter_config_http_stream_reset(raw::HostConfig, *const c_void, u64, u32);
}

/// What Envoy's admin port tells of a configuration's agent.
struct Statistics {
    admitted: Statistic,
    dropped: Statistic,
    would_drop: Statistic,
    not_utf8: Statistic,
    too_long: Statistic,
    passed_open: Statistic,
    panics: Statistic,
    limits: Statistic,
    plan_age: Statistic,
    failing_open: Statistic,
    shadow_all: Statistic,
}

impl Statistics {
    /// All of them or none. Envoy defines no more once a configuration is made.
    fn define(host: Host) -> Option<Self> {
        let by_limit = |name| host.define_counter(name, &["limit"]);
        let plain = |name| host.define_counter(name, &[]);
        Some(Self {
            admitted: by_limit("admitted")?,
            dropped: by_limit("dropped")?,
            would_drop: by_limit("would_drop")?,
            not_utf8: plain("values_not_utf8")?,
            too_long: plain("values_too_long")?,
            passed_open: plain("passed_failing_open")?,
            panics: plain("panics")?,
            limits: host.define_gauge("limits")?,
            plan_age: host.define_gauge("plan_age_ms")?,
            failing_open: host.define_gauge("failing_open")?,
            shadow_all: host.define_gauge("shadow_all")?,
        })
    }

    fn tell(&self, host: Host, filter: &Filter) {
        let (done, standing) = filter.uplink().ledger().tell();
        for (limit, done) in &done {
            host.count(self.admitted, &[limit], done.admitted);
            host.count(self.dropped, &[limit], done.dropped);
            host.count(self.would_drop, &[limit], done.would_drop);
        }
        let odd = filter.uplink().take_oddities();
        host.count(self.not_utf8, &[], odd.not_utf8);
        host.count(self.too_long, &[], odd.too_long);
        host.count(self.passed_open, &[], odd.passed_open);
        host.count(self.panics, &[], PANICS.swap(0, Relaxed));
        self.show(host, standing);
    }

    fn show(&self, host: Host, standing: Standing) {
        host.set(self.limits, standing.limits);
        if let Some(age) = standing.plan_age_ms {
            host.set(self.plan_age, age);
        }
        for (gauge, is) in
            [(self.failing_open, standing.fails_open), (self.shadow_all, standing.is_in_shadow)]
        {
            host.set(gauge, u64::from(is));
        }
    }
}
