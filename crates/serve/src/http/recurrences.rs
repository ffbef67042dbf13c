//! Handlers: list, run, pause, resume and remove the schedules of recurring submissions.

use axum::extract::State;
use axum::http::StatusCode;

use super::AppState;
use super::answer::{ApiError, ApiResult, PathName, Problems, Query, document};
use super::guard::Caller;
use super::service::acted;
use super::submissions::accepted;
use crate::api::{Accepted, Done, Recurrences, ScheduleTimes};
use crate::state::Command;
use crate::{timestamp, wall_time};

/// List all schedules.
#[utoipa::path(get, path = "/api/v1/recurrences", tag = "recurrences", security(("token" = ["look"])),
    responses((status = 200, body = Recurrences), Problems))]
pub(super) async fn list(State(app): State<AppState>) -> ApiResult {
    let recurrences = app.handle.query(|state, _| state.recurrences()).await?;
    Ok(document(StatusCode::OK, &Recurrences { recurrences }))
}

/// List the times of a schedule up to now.
#[utoipa::path(get, path = "/api/v1/recurrences/{name}/times", tag = "recurrences", security(("token" = ["look"])),
    params(("name" = String, Path, description = "Its name"),
        ("from" = String, Query, description = "The first date, in the zone of the schedule, or a date and time in UTC"),
        ("to" = String, Query, description = "The last date or time")),
    responses((status = 200, body = ScheduleTimes), Problems))]
pub(super) async fn times(
    State(app): State<AppState>,
    PathName(name): PathName,
    mut query: Query,
) -> ApiResult {
    let [from, to] = ["from", "to"].map(|name| query.text(name));
    query.end(&["from", "to"])?;
    let missing =
        |name: &str| ApiError::bad(format!("{name}: found none, expected a date such as 2026-03-01"));
    let (from, to) = (from?.ok_or_else(|| missing("from"))?, to?.ok_or_else(|| missing("to"))?);
    let times = app.handle.query(move |state, _| state.times_of(&name, &from, &to)).await??;
    Ok(document(StatusCode::OK, &ScheduleTimes { times: times.into_iter().map(timestamp).collect() }))
}

/// Submit the flows of a schedule now, with the present time in its parameters, or for one of its past times, which waits
/// for no files. Its other times stay as they are.
#[utoipa::path(post, path = "/api/v1/recurrences/{name}/run", tag = "recurrences", security(("token" = ["submit"])),
    params(("name" = String, Path, description = "Its name"),
        ("at" = Option<String>, Query, description = "A past time of the schedule, in UTC")),
    responses((status = 201, body = Accepted), Problems))]
pub(super) async fn run(
    State(app): State<AppState>,
    Caller(principal): Caller,
    PathName(name): PathName,
    mut query: Query,
) -> ApiResult {
    let at = query.read("at", "a time such as 2026-03-01T01:00:00Z", |text| text.parse().ok())?;
    query.end(&["at"])?;
    accepted(&app, principal, Command::Run { name, past: at.map(wall_time) }).await
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
