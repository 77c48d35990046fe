//! Where Envoy and the module meet: the only room with unsafe code.
//!
//! Envoy's side is trusted as far as its ABI promises: pointers that it hands over are good for the call, and those to filters and
//! their configurations from `…_new` to `…_destroy`. Everything beyond is made safe here: bytes are slices that
//! live no longer than the call, configurations are shared references.

#![allow(unsafe_code, reason = "functions of Envoy, called by their C declarations")]

mod exports;
mod host;
mod log;
mod raw;
