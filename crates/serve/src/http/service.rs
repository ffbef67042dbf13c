//! Handlers: health, load, alerts and statistics of the service; draining it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use slackline_model::WallTime;

use super::AppState;
use super::answer::{ApiError, ApiResult, Problems, Query, document, done, text};
use super::guard::Caller;
use crate::api::{self, Alerts, Done, Health, Identity, Load, Timeline};
use crate::state::auth::Principal;
use crate::state::{Answer, Command, ServiceState};
use crate::{SECOND, wall_time};

/// How long `readyz` waits for the state.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// The text format of Prometheus.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The default time span of the timeline.
const BACK: u64 = 3600 * SECOND;

fn ok() -> Response {
    document(StatusCode::OK, &Health { status: "ok".to_owned() })
}

/// Check whether this process answers.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, body = Health), Problems))]
pub(super) async fn health() -> Response {
    ok()
}

/// Check whether the service can accept submissions: it answers, it has no problem, and no important thread
/// is blocked.
#[utoipa::path(get, path = "/readyz", tag = "health", responses((status = 200, body = Health), Problems))]
pub(super) async fn ready(State(app): State<AppState>) -> ApiResult {
    let unavailable = |message: &str| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message);
    // The log of the service has the details. This operation needs no token, and the details may have paths.
    if app.handle.blocked.get().is_some() {
        return Err(unavailable("the service is blocked"));
    }
    let asked = app.handle.query(ServiceState::service);
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(service)) => match &service.trouble {
            None => Ok(ok()),
            // The service document has the details, for clients with a role.
            Some(_) => Err(unavailable("the service has a problem")),
        },
        Ok(Err(refusal)) => Err(refusal.into()),
        Err(_) => Err(unavailable("the service is busy")),
    }
}

/// Get the metrics in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "service", security(("token" = ["look"])),
    responses((status = 200, body = String, content_type = "text/plain"), Problems))]
pub(super) async fn metrics(State(app): State<AppState>) -> ApiResult {
    let service = asked(&app).await?;
    Ok(text(PROMETHEUS, app.metrics.text(&service, &app.others_count())))
}

async fn asked(app: &AppState) -> ApiResult<api::Service> {
    Ok(app.handle.query(ServiceState::service).await?)
}

/// Get the name and the role of the client.
#[utoipa::path(get, path = "/api/v1/me", tag = "service", security(("token" = ["look"])),
    responses((status = 200, body = Identity), Problems))]
pub(super) async fn me(Caller(Principal { name, role, .. }): Caller) -> Response {
    document(StatusCode::OK, &Identity { name, role })
}

/// Get the current state of the service.
#[utoipa::path(get, path = "/api/v1/service", tag = "service", security(("token" = ["look"])),
    responses((status = 200, body = api::Service), Problems))]
pub(super) async fn service(State(app): State<AppState>) -> ApiResult {
    Ok(document(StatusCode::OK, &asked(&app).await?))
}

/// Get the number of running and waiting tasks over the last day.
#[utoipa::path(get, path = "/api/v1/load", tag = "service", security(("token" = ["look"])),
    params(("since" = Option<jiff::Timestamp>, Query, description = "The moments from then on; by default all that are known")),
    responses((status = 200, body = Load), Problems))]
pub(super) async fn load(State(app): State<AppState>, query: Query) -> ApiResult {
    let since = since(query)?.unwrap_or_default();
    Ok(document(StatusCode::OK, &app.handle.query(move |state, _| state.loads(since)).await?))
}

/// Get the latest alerts, at most 1,000. They are kept across restarts until they are too old.
#[utoipa::path(get, path = "/api/v1/alerts", tag = "service", security(("token" = ["look"])),
    responses((status = 200, body = Alerts), Problems))]
pub(super) async fn alerts(State(app): State<AppState>) -> ApiResult {
    let alerts = app.handle.query(|state, _| state.alerts()).await?;
    Ok(document(StatusCode::OK, &Alerts { alerts }))
}

/// The parameter `since`.
fn since(mut query: Query) -> ApiResult<Option<WallTime>> {
    let since = query
        .read("since", "a time such as 2026-03-01T06:00:00Z", |text| text.parse::<jiff::Timestamp>().ok())?;
    query.end(&["since"])?;
    Ok(since.map(wall_time))
}

/// Get recently ended attempts and running attempts, in the order of their starts.
#[utoipa::path(get, path = "/api/v1/timeline", tag = "service", security(("token" = ["look"])),
    params(("since" = Option<jiff::Timestamp>, Query, description = "Of those that have ended: those that ended then or later; by default within the last hour")),
    responses((status = 200, body = Timeline), Problems))]
pub(super) async fn timeline(State(app): State<AppState>, query: Query) -> ApiResult {
    let since = since(query)?.unwrap_or_else(|| app.handle.now().earlier_by(BACK));
    Ok(document(StatusCode::OK, &app.handle.timeline(since)))
}

/// Stop starting new work: running tasks finish, and submissions wait.
#[utoipa::path(post, path = "/api/v1/drain", tag = "service", security(("token" = ["operate"])),
    responses((status = 200, body = Done), Problems))]
pub(super) async fn drain(State(app): State<AppState>, Caller(principal): Caller) -> ApiResult {
    acted(&app, principal, Command::Drain(true)).await
}

/// Resume starting submissions.
#[utoipa::path(post, path = "/api/v1/undrain", tag = "service", security(("token" = ["operate"])),
    responses((status = 200, body = Done), Problems))]
pub(super) async fn undrain(State(app): State<AppState>, Caller(principal): Caller) -> ApiResult {
    acted(&app, principal, Command::Drain(false)).await
}

/// Executes a command, and responds with its message.
pub(super) async fn acted(app: &AppState, principal: Principal, command: Command) -> ApiResult {
    match app.handle.execute(principal, command).await? {
        Answer::Done(message) => Ok(done(message)),
        Answer::Accepted(_) => unreachable!("invariant: a command is answered in words"),
    }
}
