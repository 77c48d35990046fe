//! Compiles the protocol without protoc.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto/headworks/v1");
    let files = protox::compile(["headworks/v1/headworks.proto", "headworks/v1/kept.proto"], ["proto"])?;
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("headworks.v1.descriptor"), prost_bytes(&files))?;
    tonic_prost_build::configure().compile_fds(files)?;
    Ok(())
}

fn prost_bytes(files: &impl prost::Message) -> Vec<u8> {
    files.encode_to_vec()
}
