//! The scenarios that come with the program.

/// Names and scripts, by name.
pub const SCENARIOS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// The script of this name.
pub fn scenario(name: &str) -> Option<&'static str> {
    SCENARIOS.iter().find(|(known, _)| *known == name).map(|(_, script)| *script)
}

/// What a script says it is about: its first comment.
pub fn title(script: &str) -> &str {
    script.lines().find_map(|line| line.strip_prefix('#')).unwrap_or_default().trim()
}
