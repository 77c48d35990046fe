//! What every node is told, however it is told: what it is called, and where its parents are.

use std::net::IpAddr;

use tonic::transport::Uri;

/// Longest name and address, in bytes: hellos carry them, and are bounded.
const MAX_TEXT: usize = 128;

/// The name of a node or a zone; advice for whoever wrote anything else.
pub fn name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.len() > MAX_TEXT || text.chars().any(char::is_control) {
        return Err(format!("write a name of 1 to {MAX_TEXT} bytes, without control characters"));
    }
    Ok(text.to_owned())
}

/// The name of a region; the empty one is none.
pub fn region(text: &str) -> Result<String, String> {
    if text.is_empty() { Ok(String::new()) } else { name(text) }
}

/// The URL of a parent: checked before anything starts, so that a typing error is found there.
pub fn parent_url(text: &str) -> Result<String, String> {
    let text = text.trim();
    let advice = || format!("write it as https://host:port or http://host:port, in at most {MAX_TEXT} bytes");
    let uri: Uri = text.parse().map_err(|_| advice())?;
    // What is before an @ may be a password, and the URL is shown in logs and by /stats.
    if !matches!(uri.scheme_str(), Some("http" | "https"))
        || uri.port_u16().is_none()
        || text.len() > MAX_TEXT
        || text.contains('@')
    {
        return Err(advice());
    }
    Ok(text.to_owned())
}

/// Whether what is said to this URL stays on this machine.
pub fn is_on_this_machine(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost")
        || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// A name for a node that was given none: role, host and process, unique in a fleet of hosts with names of their own.
pub fn default_id(role: &str) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "localhost" } else { host.trim() };
    format!("{role}-{host}-{}", std::process::id())
}
