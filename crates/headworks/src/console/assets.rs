//! The page: files in the program, which hold no data and may be read by whoever reaches the port.

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue};
use axum::response::Response;
use axum::routing::get;

/// Where the page is.
pub(super) const PAGE: &str = "/console/";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

struct Asset {
    path: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! asset {
    ($name:literal, $kind:expr) => {
        Asset {
            path: concat!("/console/", $name),
            kind: $kind,
            bytes: include_bytes!(concat!("assets/", $name)),
        }
    };
}

const ASSETS: &[Asset] = &[
    Asset { path: PAGE, kind: HTML, bytes: include_bytes!("assets/index.html") },
    asset!("icon.svg", "image/svg+xml"),
    asset!("style/base.css", CSS),
    asset!("style/page.css", CSS),
    asset!("style/parts.css", CSS),
    asset!("js/main.js", JS),
    asset!("js/charts.js", JS),
    asset!("js/controls.js", JS),
    asset!("js/dom.js", JS),
    asset!("js/file.js", JS),
    asset!("js/fleet.js", JS),
    asset!("js/format.js", JS),
    asset!("js/head.js", JS),
    asset!("js/keys.js", JS),
    asset!("js/limit.js", JS),
    asset!("js/limits.js", JS),
    asset!("js/live.js", JS),
    asset!("js/route.js", JS),
    asset!("js/theme.js", JS),
    asset!("js/token.js", JS),
    asset!("js/trial.js", JS),
    asset!("uplot/uPlot.iife.min.js", JS),
    asset!("uplot/uPlot.min.css", CSS),
    asset!("uplot/LICENSE", TEXT),
];

/// Whether a path is that of the page or one of its files, which need no token; nor does the way to it.
pub(crate) fn is_asset(path: &str) -> bool {
    path == "/" || ASSETS.iter().any(|asset| asset.path == path)
}

/// What the page may do: nothing but load its own files and ask its own server.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'";

/// Said with every answer of the console.
const GUARD: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (HeaderName::from_static("x-content-type-options"), "nosniff"),
    (HeaderName::from_static("x-frame-options"), "DENY"),
    (HeaderName::from_static("referrer-policy"), "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// The same answer, with what keeps a browser from doing more with it than to show it.
pub(super) async fn guard(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in GUARD {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // A new release has new files at the old paths; and figures are those of now.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The routes of all files.
pub(super) fn routes() -> Router {
    ASSETS.iter().fold(Router::new(), |router, asset| {
        router.route(asset.path, get(async || ([(CONTENT_TYPE, asset.kind)], asset.bytes)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.bytes.len()).sum();
        assert!(bytes < 200_000, "{bytes}");
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere_and_no_script_is_inline() {
        for asset in ASSETS.iter().filter(|asset| !asset.path.contains("uplot")) {
            let text = str::from_utf8(asset.bytes).unwrap();
            let links = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!links.contains("http://") && !links.contains("https://"), "{}", asset.path);
            for unsafe_way in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", " onclick=", "style=\""]
            {
                assert!(!text.contains(unsafe_way), "{unsafe_way} in {}", asset.path);
            }
        }
    }

    #[test]
    fn files_are_open_and_figures_are_not() {
        assert!(is_asset("/") && is_asset(PAGE) && is_asset("/console/js/main.js"));
        for closed in
            ["/console/events", "/console/file/running", "/console/js/", "/console/js/../events", "/status"]
        {
            assert!(!is_asset(closed), "{closed}");
        }
    }
}
