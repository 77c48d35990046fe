//! Lists the scenarios, so that the program carries all of them and none is forgotten.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let manifest = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let folder = Path::new(&manifest).join("scenarios");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<_> = fs::read_dir(&folder)?.collect::<io::Result<Vec<_>>>()?;
    files.sort_by_key(fs::DirEntry::path);
    let mut list = String::from("&[\n");
    for path in files.iter().map(fs::DirEntry::path) {
        if path.extension().is_some_and(|extension| extension == "sim") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            list.push_str(&format!("    ({name:?}, include_str!({:?})),\n", path.display().to_string()));
        }
    }
    list.push_str("]\n");
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&out).join("scenarios.rs"), list)
}
