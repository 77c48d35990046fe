//! Describes the services that proxies ask, for the reflection service.

use std::error::Error;
use std::path::PathBuf;

use prost::Message as _;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let services = ["envoy/service/ratelimit/v3/rls.proto", "envoy/service/auth/v3/external_auth.proto"];
    let files = protox::compile(services, ["proto"])?;
    std::fs::write(PathBuf::from(std::env::var("OUT_DIR")?).join("envoy.bin"), files.encode_to_vec())?;
    Ok(())
}
