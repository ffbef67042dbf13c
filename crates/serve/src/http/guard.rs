//! Authentication, limits and the audit note of every request.

use std::time::Duration;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;

use super::AppState;
use super::answer::{ApiError, ApiResult, AuditNote};
use super::listen::Peer;
use crate::http::audit_line::Line;
use crate::http::refusals::{LIMIT, WINDOW, network};
use crate::state::auth::{LOOPBACK, Principal, Role};

/// The principal of a request. `None` if the client is unknown.
#[derive(Clone, Debug)]
struct Authenticated(Option<Principal>);

/// The principal of a request, for handlers that need one.
pub(super) struct Caller(pub(super) Principal);

impl FromRequestParts<AppState> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, ApiError> {
        let known = parts.extensions.get::<Authenticated>().and_then(|known| known.0.clone());
        known.map(Self).ok_or_else(unknown)
    }
}

fn unknown() -> ApiError {
    ApiError::new(
        StatusCode::UNAUTHORIZED,
        "missing or unknown token: send authorization: Bearer TOKEN; create a token with `slackline token --add`",
    )
}

fn unavailable(message: &str) -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message)
}

/// The middleware of every request.
pub(super) async fn door(State(app): State<AppState>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let peer = request.extensions().get::<Peer>().copied().unwrap_or(Peer::Unix(None));
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let asked = request.uri().path().to_owned();
    let (asking, headers) = (app.clone(), request.headers().clone());
    // Programs look up users, which may take a while.
    let principal = tokio::task::spawn_blocking(move || let_in(&asking, peer, &headers)).await;
    let principal =
        principal.unwrap_or_else(|_| Err(unavailable("the service could not identify the client")));
    let known = principal.as_ref().ok().cloned().flatten();
    let mut answer = match principal {
        Ok(principal) => {
            request.extensions_mut().insert(Authenticated(principal));
            next.run(request).await
        }
        Err(refused) => refused.into_response(),
    };
    let source = source(known.as_ref(), peer);
    let line = Line {
        at: crate::timestamp(app.handle.now()),
        role: known.as_ref().map(|principal| principal.role.name().to_owned()),
        principal: known.map(|principal| principal.name),
        from: peer.to_string(),
        method: method.as_str().to_owned(),
        path: asked,
        status: answer.status().as_u16(),
        said: answer.extensions().get::<AuditNote>().map(|said| said.0.clone()),
        more: 0,
    };
    if let Some(retry) = log(&app, &method, &source, line) {
        answer = limited(retry).into_response();
    }
    let (status, path) = (answer.status().as_u16(), path.as_deref().unwrap_or("other"));
    app.metrics.request(named(&method), path, status, began.elapsed().as_secs_f64());
    let headers = answer.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    answer
}

/// Logs an accepted change or a refused request. If a denied source has reached its limit, returns the time
/// after which it may retry.
fn log(app: &AppState, method: &Method, source: &str, line: Line) -> Option<Duration> {
    let is_change = !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    if is_change && line.status < 400 {
        app.audit.accepted(line);
        return None;
    }
    (is_change || line.is_denied()).then(|| app.audit.refused(source, line))?
}

/// The source for which refused requests are counted: a known user, a user of this machine, or a network.
fn source(known: Option<&Principal>, peer: Peer) -> String {
    match (known, peer) {
        (Some(principal), _) => format!("user {}", principal.name),
        (None, Peer::Unix(_)) => peer.to_string(),
        (None, Peer::Tcp { address, .. }) => network(address.ip()),
    }
}

fn limited(retry: Duration) -> ApiError {
    let message = format!(
        "the limit of {LIMIT} refused requests within {} s is reached; retry later",
        WINDOW.as_secs()
    );
    let retry_after = Some(retry.as_secs() + 1);
    ApiError { retry_after, ..ApiError::new(StatusCode::TOO_MANY_REQUESTS, message) }
}

/// The name of a standard method, else `OTHER`.
fn named(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("OTHER")
}

/// Authenticates the client. Returns `None` if the client is unknown.
///
/// # Errors
/// The request comes from a page of another site, or its token is unknown.
fn let_in(app: &AppState, peer: Peer, headers: &HeaderMap) -> ApiResult<Option<Principal>> {
    if let Peer::Tcp { is_own, .. } = peer {
        not_by_another_page(app, headers, is_own)?;
    }
    if let Some(said) = headers.get(header::AUTHORIZATION) {
        return by_token(app, said).map(Some);
    }
    Ok(match peer {
        Peer::Unix(Some(uid)) => {
            // Root can act as this user in any case.
            let role = if uid == app.own || uid == 0 {
                Some(Role::Operate)
            } else {
                app.setup.socket.as_ref().and_then(|socket| socket.others)
            };
            role.map(|role| Principal::new(app.users.name(uid), role))
        }
        Peer::Tcp { is_own: true, .. } => app.setup.loopback.map(|role| Principal::new(LOOPBACK, role)),
        Peer::Unix(None) | Peer::Tcp { .. } => None,
    })
}

/// The principal of a token.
///
/// # Errors
/// The header has no token, the token is unknown, or the tokens cannot be read.
fn by_token(app: &AppState, said: &HeaderValue) -> ApiResult<Principal> {
    let wrong = |message: &str| ApiError::new(StatusCode::UNAUTHORIZED, message);
    let token =
        token_in(said).ok_or_else(|| wrong("authorization: found no token, expected Bearer TOKEN"))?;
    match app.tokens.principal(token) {
        Ok(Some(principal)) => Ok(principal),
        Ok(None) => Err(wrong("authorization: unknown token")),
        Err(error) => {
            (app.setup.say)(&error.to_string());
            Err(unavailable("the service cannot read its tokens"))
        }
    }
}

/// Whether a token has been removed. Returns false if the tokens cannot be read.
pub(super) fn is_unknown(app: &AppState, said: &HeaderValue) -> bool {
    token_in(said).is_none_or(|token| matches!(app.tokens.principal(token), Ok(None)))
}

/// The token of an `authorization` header.
fn token_in(said: &HeaderValue) -> Option<&str> {
    let (scheme, token) = said.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Refuses requests from pages of other sites. The `Host` header shows DNS rebinding to the loopback address.
/// The `Origin` header shows other cross-site requests.
fn not_by_another_page(app: &AppState, headers: &HeaderMap, is_own: bool) -> ApiResult<()> {
    let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?"));
    let host = text(header::HOST).unwrap_or_default();
    if is_own && !is_this_machine(host) && !is_listed(&app.setup.hosts, host) {
        let message = format!(
            "host: found {host:?}, expected localhost, a loopback address, or a name passed with --host"
        );
        return Err(ApiError::new(StatusCode::FORBIDDEN, message));
    }
    let Some(origin) = text(header::ORIGIN) else { return Ok(()) };
    let of_origin = origin.split_once("://").map_or(origin, |(_, host)| host);
    if of_origin.eq_ignore_ascii_case(host) || is_listed(&app.setup.hosts, of_origin) {
        return Ok(());
    }
    let message = format!("origin: found {origin:?}, expected a page of this service");
    Err(ApiError::new(StatusCode::FORBIDDEN, message))
}

/// A host without its port.
fn bare(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

/// Whether a host is a loopback address or `localhost`, which DNS rebinding cannot change.
fn is_this_machine(host: &str) -> bool {
    let host = bare(host);
    let is_own = |address: std::net::IpAddr| address.is_loopback();
    host.parse().is_ok_and(is_own) || host.eq_ignore_ascii_case("localhost")
}

fn is_listed(hosts: &[String], host: &str) -> bool {
    hosts.iter().any(|known| known.eq_ignore_ascii_case(host) || known.eq_ignore_ascii_case(bare(host)))
}

/// Refuses principals below a role.
pub(super) async fn require(State(least): State<Role>, request: Request, next: Next) -> Response {
    let known = request.extensions().get::<Authenticated>().and_then(|known| known.0.as_ref());
    let Some(principal) = known else { return unknown().into_response() };
    if principal.role < least {
        let Principal { name, role, .. } = principal;
        let message = format!("{name} has the role {}, expected {}", role.name(), least.name());
        return ApiError::new(StatusCode::FORBIDDEN, message).into_response();
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_this_machine_with_any_port() {
        for own in
            ["localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:8080", "127.8.9.1:1", "[::1]", "[::1]:8080"]
        {
            assert!(is_this_machine(own), "{own}");
        }
        for other in [
            "",
            "example.org",
            "127.0.0.1.example.org",
            "10.0.0.1:80",
            "localhost.example.org",
            "::1x",
            "0.0.0.0",
        ] {
            assert!(!is_this_machine(other), "{other}");
        }
        let hosts = ["flows.example.org".to_owned()];
        assert!(is_listed(&hosts, "flows.example.org:443") && is_listed(&hosts, "Flows.Example.org"));
        assert!(!is_listed(&hosts, "example.org"));
    }
}
