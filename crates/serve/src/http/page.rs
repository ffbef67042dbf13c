//! The files of the web page, one route each. They are compiled in and need no token, since they contain no
//! data; the page requests its data with a token.

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::AppState;

/// The content security policy: the page may load and request only from the service.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

struct Asset {
    /// The URL path of the file.
    path: &'static str,
    kind: &'static str,
    content: &'static [u8],
}

/// All files. The program and the style are built from `crates/slackline/page/src/dashboard`.
const ASSETS: [Asset; 3] = [
    Asset { path: "/", kind: "text/html; charset=utf-8", content: include_bytes!("../../page/index.html") },
    Asset {
        path: "/dashboard.js",
        kind: "text/javascript; charset=utf-8",
        content: include_bytes!("../../page/dashboard.js"),
    },
    Asset {
        path: "/dashboard.css",
        kind: "text/css; charset=utf-8",
        content: include_bytes!("../../page/dashboard.css"),
    },
];

/// Adds the routes of the files.
pub(super) fn with_assets(router: Router<AppState>) -> Router<AppState> {
    ASSETS.iter().fold(router, |router, asset| router.route(asset.path, get(|| async { answer(asset) })))
}

fn answer(asset: &'static Asset) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(asset.kind)),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        // The next version of the service may have a different file.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, asset.content).into_response()
}
