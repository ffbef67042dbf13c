//! Handlers: list, run, pause, resume and remove the schedules of recurring submissions.

use axum::extract::State;
use axum::http::StatusCode;

use super::AppState;
use super::answer::{ApiResult, PathName, Problems, document};
use super::guard::Caller;
use super::service::acted;
use crate::api::{Done, Recurrences};
use crate::state::Command;

/// List all schedules.
#[utoipa::path(get, path = "/api/v1/recurrences", tag = "recurrences", security(("token" = ["look"])),
    responses((status = 200, body = Recurrences), Problems))]
pub(super) async fn list(State(app): State<AppState>) -> ApiResult {
    let recurrences = app.handle.query(|state, _| state.recurrences()).await?;
    Ok(document(StatusCode::OK, &Recurrences { recurrences }))
}

/// Submit the flows of a schedule now, with the present time in its parameters. Its times stay as they are.
#[utoipa::path(post, path = "/api/v1/recurrences/{name}/run", tag = "recurrences", security(("token" = ["submit"])),
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Done), Problems))]
pub(super) async fn run(
    State(app): State<AppState>,
    Caller(principal): Caller,
    PathName(name): PathName,
) -> ApiResult {
    acted(&app, principal, Command::Run(name)).await
}

/// Remove a schedule. Its earlier submissions continue.
#[utoipa::path(delete, path = "/api/v1/recurrences/{name}", tag = "recurrences", security(("token" = ["submit"])),
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Done), Problems))]
pub(super) async fn remove(
    State(app): State<AppState>,
    Caller(principal): Caller,
    PathName(name): PathName,
) -> ApiResult {
    acted(&app, principal, Command::Remove(name)).await
}

/// Pause a schedule. Its times pass without submissions until it is resumed.
#[utoipa::path(post, path = "/api/v1/recurrences/{name}/pause", tag = "recurrences", security(("token" = ["submit"])),
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Done), Problems))]
pub(super) async fn pause(
    State(app): State<AppState>,
    Caller(principal): Caller,
    PathName(name): PathName,
) -> ApiResult {
    acted(&app, principal, Command::Pause { name, paused: true }).await
}

/// Resume a schedule with its next time.
#[utoipa::path(post, path = "/api/v1/recurrences/{name}/unpause", tag = "recurrences", security(("token" = ["submit"])),
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Done), Problems))]
pub(super) async fn unpause(
    State(app): State<AppState>,
    Caller(principal): Caller,
    PathName(name): PathName,
) -> ApiResult {
    acted(&app, principal, Command::Pause { name, paused: false }).await
}
