//! Handlers: why flows wait, and the logs of attempts.

use axum::extract::State;
use axum::http::StatusCode;

use crate::api::Explanation;
use crate::http::AppState;
use crate::http::answer::{ApiError, ApiResult, PathNumber, Problems, Query, document, text};
use crate::service::explain::LogQuery;
use crate::state::Refusal;

/// Explain why a flow of a submission, or one of its jobs, waits or waited: which tasks held the slots.
#[utoipa::path(get, path = "/api/v1/submissions/{number}/explain", tag = "submissions", security(("token" = ["look"])),
    params(("number" = u64, Path, description = "Its number"),
        ("flow" = Option<String>, Query, description = "The flow; may be left out if there is only one"),
        ("job" = Option<String>, Query, description = "The job; the flow as a whole if none is named")),
    responses((status = 200, body = Explanation), Problems))]
pub(super) async fn explain(
    State(app): State<AppState>,
    PathNumber(number): PathNumber,
    mut query: Query,
) -> ApiResult {
    let (flow, job) = (query.text("flow")?, query.text("job")?);
    query.end(&["flow", "job"])?;
    let handle = app.handle.clone();
    let explained = beside(move || handle.explain(number, flow.as_deref(), job.as_deref())).await?;
    Ok(document(StatusCode::OK, &explained))
}

/// Get the logs of the attempts of a job.
#[utoipa::path(get, path = "/api/v1/submissions/{number}/logs", tag = "submissions", security(("token" = ["look"])),
    params(("number" = u64, Path, description = "Its number"),
        ("flow" = Option<String>, Query, description = "The flow; may be left out if there is only one"),
        ("job" = String, Query, description = "The job"),
        ("task" = Option<String>, Query, description = "`map-3`, `reduce-0`, `map` or `reduce`; the default is all tasks"),
        ("attempt" = Option<u32>, Query, minimum = 1, description = "Only the attempt of this number of each task"),
        ("failed" = Option<bool>, Query, description = "Only attempts that failed")),
    responses((status = 200, body = String, content_type = "text/plain"), Problems))]
pub(super) async fn logs(
    State(app): State<AppState>,
    PathNumber(number): PathNumber,
    mut query: Query,
) -> ApiResult {
    let (flow, job, task) = (query.text("flow")?, query.text("job")?, query.text("task")?);
    let job = job.ok_or_else(|| ApiError::bad("missing parameter job"))?;
    let attempt = query
        .read("attempt", "a whole number from 1", |text| text.parse().ok().filter(|&attempt| attempt > 0))?;
    let failed = query.read("failed", "true or false", |text| text.parse().ok())?;
    query.end(&["flow", "job", "task", "attempt", "failed"])?;
    let asked = LogQuery { flow, job, task, attempt, failed: failed.unwrap_or(false) };
    let handle = app.handle.clone();
    let said = beside(move || handle.logs(number, &asked)).await?;
    Ok(text("text/plain; charset=utf-8", said))
}

/// Reads files on another thread, so that the service answers other requests meanwhile.
pub(super) async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> ApiResult<T> {
    let done = tokio::task::spawn_blocking(work).await;
    let ended = || ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "the service is stopping");
    Ok(done.map_err(|_| ended())??)
}
