//! Envoy's objects as the module uses them.

use std::ptr;
use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;

use super::raw;
use crate::answer::{BODY, Refusal, TOO_MANY_REQUESTS};
use crate::attributes::Request;

/// A request under way, during one call of Envoy.
pub(super) struct Stream(raw::HostFilter);

impl Stream {
    /// # Safety
    ///
    /// The pointer must be that of a filter, and the stream must be dropped before Envoy's call returns.
    pub(super) unsafe fn new(filter: raw::HostFilter) -> Self {
        Self(filter)
    }

    /// What Envoy writes down as the place of some bytes, if it says that there are any.
    fn bytes(&self, ask: impl FnOnce(*mut raw::Buffer) -> bool) -> Option<&[u8]> {
        let mut found = raw::Buffer::NONE;
        if !ask(&raw mut found) {
            return None;
        }
        // SAFETY: bytes of a request stay where they are during a call in which nothing is set, and `self` ends before it does.
        Some(unsafe { slice(found) })
    }

    fn attribute(&self, attribute: u32) -> Option<&[u8]> {
        // SAFETY: a filter that lives, and a place to write to.
        let found = self.bytes(|place| unsafe {
            raw::envoy_dynamic_module_callback_http_filter_get_attribute_string(self.0, attribute, place)
        });
        // Envoy may say that there is something, and that it is empty.
        found.filter(|bytes| !bytes.is_empty())
    }

    /// Answers in the place of whoever the request is for.
    pub(super) fn answer(&self, refusal: &Refusal) {
        let header = |(name, value): &(&'static str, String)| raw::Header {
            key: raw::Buffer::of(name),
            value: raw::Buffer::of(value),
        };
        let headers: SmallVec<[raw::Header; 3]> = refusal.headers.iter().map(header).collect();
        let (body, details) = (raw::Buffer::of(BODY), raw::Buffer::of(&refusal.details));
        // SAFETY: a filter that lives; Envoy copies what it is given before it returns.
        unsafe {
            raw::envoy_dynamic_module_callback_http_send_response(
                self.0,
                TOO_MANY_REQUESTS,
                headers.as_ptr(),
                headers.len(),
                body,
                details,
            );
        }
    }
}

impl Request for Stream {
    fn header(&self, name: &str) -> Option<&[u8]> {
        let key = raw::Buffer::of(name);
        // SAFETY: a filter that lives, a key that does during the call, and a place to write to; nobody asks how many there are.
        self.bytes(|place| unsafe {
            raw::envoy_dynamic_module_callback_http_get_header(
                self.0,
                raw::REQUEST_HEADERS,
                key,
                place,
                0,
                ptr::null_mut(),
            )
        })
    }

    fn route(&self) -> Option<&[u8]> {
        self.attribute(raw::ROUTE_NAME)
    }

    fn cluster(&self) -> Option<&[u8]> {
        // SAFETY: a filter that lives, and a place to write to.
        self.bytes(|place| unsafe { raw::envoy_dynamic_module_callback_http_get_cluster_name(self.0, place) })
    }

    fn peer_identity(&self) -> Option<&[u8]> {
        self.attribute(raw::URI_SAN_OF_PEER).or_else(|| self.attribute(raw::DNS_SAN_OF_PEER))
    }
}

/// # Safety
///
/// Where the buffer has a length, it must name so many bytes that nobody changes while the slice is used.
pub(super) unsafe fn slice<'b>(buffer: raw::Buffer) -> &'b [u8] {
    if buffer.start.is_null() || buffer.length == 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(buffer.start, buffer.length) }
}

/// A statistic that was defined, for all labels that it may have.
#[derive(Clone, Copy)]
pub(super) struct Statistic(usize);

/// Envoy's side of a configuration, from when it is made until it is destroyed. Statistics are told on the main thread.
#[derive(Clone, Copy)]
pub(super) struct Host(raw::HostConfig);

impl Host {
    /// # Safety
    ///
    /// The pointer must be that of a configuration, and the host must be dropped before Envoy's call returns.
    pub(super) unsafe fn new(config: raw::HostConfig) -> Self {
        Self(config)
    }

    /// A counter, by limit or not; nothing if Envoy refuses it.
    pub(super) fn define_counter(self, name: &str, labels: &[&str]) -> Option<Statistic> {
        let (labels, mut id) = (buffers(labels), 0);
        // SAFETY: a configuration that lives, texts that do during the call, and a place to write to.
        let result = unsafe {
            raw::envoy_dynamic_module_callback_http_filter_config_define_counter(
                self.0,
                raw::Buffer::of(name),
                labels.as_ptr(),
                labels.len(),
                &raw mut id,
            )
        };
        (result == raw::SUCCESS).then_some(Statistic(id))
    }

    /// The same for a gauge without labels.
    pub(super) fn define_gauge(self, name: &str) -> Option<Statistic> {
        let mut id = 0;
        // SAFETY: as above.
        let result = unsafe {
            raw::envoy_dynamic_module_callback_http_filter_config_define_gauge(
                self.0,
                raw::Buffer::of(name),
                ptr::null(),
                0,
                &raw mut id,
            )
        };
        (result == raw::SUCCESS).then_some(Statistic(id))
    }

    /// Adds to a counter, with as many labels as it was defined with.
    pub(super) fn count(self, counter: Statistic, labels: &[&str], by: u64) {
        let labels = buffers(labels);
        // SAFETY: a configuration that lives, and texts that do during the call.
        unsafe {
            raw::envoy_dynamic_module_callback_http_filter_config_increment_counter(
                self.0,
                counter.0,
                labels.as_ptr(),
                labels.len(),
                by,
            );
        }
    }

    /// Sets a gauge.
    pub(super) fn set(self, gauge: Statistic, to: u64) {
        // SAFETY: a configuration that lives.
        unsafe {
            raw::envoy_dynamic_module_callback_http_filter_config_set_gauge(
                self.0,
                gauge.0,
                ptr::null(),
                0,
                to,
            );
        }
    }
}

fn buffers(texts: &[&str]) -> SmallVec<[raw::Buffer; 1]> {
    texts.iter().map(|text| raw::Buffer::of(text)).collect()
}

/// Asks Envoy's main thread to call back a configuration, from any thread, until it is silenced.
pub(super) struct Bell(Mutex<Option<Scheduler>>);

struct Scheduler(raw::HostScheduler);

// SAFETY: Envoy's scheduler is made to be told by other threads; the lock lets one do so at a time.
unsafe impl Send for Scheduler {}

impl Bell {
    /// One for this configuration.
    pub(super) fn of(host: Host) -> Self {
        // SAFETY: a configuration that lives.
        let scheduler =
            unsafe { raw::envoy_dynamic_module_callback_http_filter_config_scheduler_new(host.0) };
        Self(Mutex::new((!scheduler.is_null()).then_some(Scheduler(scheduler))))
    }

    /// Asks; says whether there is anybody to call back.
    pub(super) fn ring(&self) -> bool {
        let scheduler = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Scheduler(scheduler)) = &*scheduler {
            // SAFETY: it is deleted under the lock, and not before its configuration is destroyed.
            unsafe { raw::envoy_dynamic_module_callback_http_filter_config_scheduler_commit(*scheduler, 0) };
        }
        scheduler.is_some()
    }

    /// From now on nobody is called back: the configuration is about to end, and Envoy may be after it.
    pub(super) fn silence(&self) {
        let scheduler = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Scheduler(scheduler)) = scheduler {
            // SAFETY: it was taken, so nobody uses it any more.
            unsafe { raw::envoy_dynamic_module_callback_http_filter_config_scheduler_delete(scheduler) };
        }
    }
}
