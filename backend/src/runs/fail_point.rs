//! Named places where the crash tests make the process die.
//!
//! Always compiled, inert unless the environment variable `GNNXML_FAIL_POINT` names one:
//! a crash test must kill the very program that people run. The variable is read once.

use std::sync::OnceLock;

/// Every place there is, so that the crash test visits each.
pub const FAIL_POINTS: &[&str] = &[
    "upload_half_written",
    "upload_renamed",
    "event_read",
    "event_stored",
    "publish_exported",
    "publish_renamed",
    "publish_recorded",
    "activate_loaded",
    "activate_recorded",
    "run_spawned",
];

/// Dies here, as if by `kill -9`, when the environment asks for it.
pub fn fail_point(name: &str) {
    static CHOSEN: OnceLock<Option<String>> = OnceLock::new();
    debug_assert!(FAIL_POINTS.contains(&name), "{name} is not in the list");
    let chosen = CHOSEN.get_or_init(|| std::env::var("GNNXML_FAIL_POINT").ok());
    if chosen.as_deref() == Some(name) {
        std::process::abort();
    }
}
