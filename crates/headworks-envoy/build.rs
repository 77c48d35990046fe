//! Envoy must never unload the module: its thread goes on, whatever becomes of the filters.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
