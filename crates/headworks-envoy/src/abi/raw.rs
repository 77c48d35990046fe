//! The part of Envoy's ABI for dynamic modules that is used here, by version 0.2.0, which Envoy 1.40 has. Envoy loads modules of one
//! version before its own, too.
//!
//! The declarations are ours; what they mean is said in Envoy's `source/extensions/dynamic_modules/abi/abi.h`.

use std::ffi::{CStr, c_void};
use std::ptr;

/// The version that the module speaks.
pub(super) const VERSION: &CStr = c"v0.2.0";

/// Envoy's configuration of a filter.
pub(super) type HostConfig = *mut c_void;
/// Envoy's filter of one request.
pub(super) type HostFilter = *mut c_void;
/// What runs a hook on Envoy's main thread.
pub(super) type HostScheduler = *mut c_void;

/// Bytes of either side.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Buffer {
    pub(super) start: *const u8,
    pub(super) length: usize,
}

/// A header of an answer.
#[repr(C)]
pub(super) struct Header {
    pub(super) key: Buffer,
    pub(super) value: Buffer,
}

impl Buffer {
    pub(super) const NONE: Self = Self { start: ptr::null(), length: 0 };

    pub(super) fn of(text: &str) -> Self {
        Self { start: text.as_ptr(), length: text.len() }
    }
}

/// What happens to a request after its headers.
pub(super) const CONTINUE: u32 = 0;
pub(super) const STOP: u32 = 1;
/// Kinds of headers: those of the request.
pub(super) const REQUEST_HEADERS: u32 = 0;
/// Attributes of a request, by their place in the ABI's list.
pub(super) const DNS_SAN_OF_PEER: u32 = 35;
pub(super) const URI_SAN_OF_PEER: u32 = 37;
pub(super) const ROUTE_NAME: u32 = 61;
/// What defining a statistic answers when it has worked.
pub(super) const SUCCESS: u32 = 0;

/// Levels of Envoy's log.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(super) enum LogLevel {
    Trace = 0,
    Debug = 1,
    Info = 2,
    Warn = 3,
    Error = 4,
}

unsafe extern "C" {
    pub(super) fn envoy_dynamic_module_callback_log(level: LogLevel, message: Buffer);
    pub(super) fn envoy_dynamic_module_callback_log_enabled(level: LogLevel) -> bool;
    pub(super) fn envoy_dynamic_module_callback_is_validation_mode() -> bool;
    pub(super) fn envoy_dynamic_module_callback_http_filter_config_define_counter(
        config: HostConfig,
        name: Buffer,
        labels: *const Buffer,
        label_count: usize,
        id: *mut usize,
    ) -> u32;
    pub(super) fn envoy_dynamic_module_callback_http_filter_config_define_gauge(
        config: HostConfig,
        name: Buffer,
        labels: *const Buffer,
        label_count: usize,
        id: *mut usize,
    ) -> u32;
    pub(super) fn envoy_dynamic_module_callback_http_filter_config_increment_counter(
        config: HostConfig,
        id: usize,
        values: *const Buffer,
        value_count: usize,
        by: u64,
    ) -> u32;
    pub(super) fn envoy_dynamic_module_callback_http_filter_config_set_gauge(
        config: HostConfig,
        id: usize,
        values: *const Buffer,
        value_count: usize,
        to: u64,
    ) -> u32;
    pub(super) fn envoy_dynamic_module_callback_http_filter_config_scheduler_new(
        config: HostConfig,
    ) -> HostScheduler;
    pub(super) fn envoy_dynamic_module_callback_http_filter_config_scheduler_commit(
        scheduler: HostScheduler,
        event: u64,
    );
    pub(super) fn envoy_dynamic_module_callback_http_filter_config_scheduler_delete(scheduler: HostScheduler);
    pub(super) fn envoy_dynamic_module_callback_http_get_header(
        filter: HostFilter,
        kind: u32,
        key: Buffer,
        value: *mut Buffer,
        place: usize,
        count: *mut usize,
    ) -> bool;
    pub(super) fn envoy_dynamic_module_callback_http_filter_get_attribute_string(
        filter: HostFilter,
        attribute: u32,
        value: *mut Buffer,
    ) -> bool;
    pub(super) fn envoy_dynamic_module_callback_http_get_cluster_name(
        filter: HostFilter,
        value: *mut Buffer,
    ) -> bool;
    pub(super) fn envoy_dynamic_module_callback_http_send_response(
        filter: HostFilter,
        status: u32,
        headers: *const Header,
        header_count: usize,
        body: Buffer,
        details: Buffer,
    );
}
