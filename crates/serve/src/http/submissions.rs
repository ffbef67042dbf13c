//! Handlers: create, list, show, change, hold, resume and cancel submissions.

use std::time::Duration;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};

use super::AppState;
use super::answer::{ApiError, ApiResult, AuditNote, JsonBody, PathNumber, Problems, Query, document};
use super::explain::beside;
use super::guard::Caller;
use super::service::acted;
use crate::api::{Accepted, Change, Done, Submission, Submissions, Submit};
use crate::service::handle::states;
use crate::state::auth::Principal;
use crate::state::record::Rerun;
use crate::state::{Answer, Command, Filter};

/// The default number of submissions of a page.
const PAGE: usize = 100;
const PAGE_MAX: usize = 1_000;

/// The longest wait that a client may request, seconds.
const WAIT_MAX: f64 = 300.0;

/// Submit a flow file: for now, for when files exist, or on a schedule. The response means that the
/// submission is on disk.
#[utoipa::path(post, path = "/api/v1/submissions", tag = "submissions", security(("token" = ["submit"])),
    params(("wait" = Option<f64>, Query, minimum = 0, maximum = 300, description = "Seconds to wait for the prediction at most")),
    request_body = Submit,
    responses((status = 201, body = Accepted, description = "It is submitted, or recurs from now on"),
        (status = 200, body = Accepted, description = "It is skipped, because a submission of its name has not ended"), Problems))]
pub(super) async fn submit(
    State(app): State<AppState>,
    Caller(principal): Caller,
    mut query: Query,
    JsonBody(submit): JsonBody<Submit>,
) -> ApiResult {
    let wait = query.seconds("wait", WAIT_MAX)?;
    query.end(&["wait"])?;
    let handle = app.handle.clone();
    let user = principal.clone();
    let command = beside(move || handle.submission(&user, submit)).await?;
    let Answer::Accepted(accepted) = app.handle.execute(principal, command).await? else {
        unreachable!("invariant: what is submitted is accepted or refused")
    };
    let mut accepted: Accepted = *accepted;
    if let (Some(seconds), Some(number)) = (wait, accepted.number) {
        accepted.prediction = app.handle.prediction(number, seconds).await;
    }
    let is_there = accepted.number.is_some() || accepted.next.is_some();
    let mut answer = document(if is_there { StatusCode::CREATED } else { StatusCode::OK }, &accepted);
    if let Some(number) = accepted.number {
        let there = HeaderValue::from_str(&format!("/api/v1/submissions/{number}"));
        answer.headers_mut().extend(there.ok().map(|there| (header::LOCATION, there)));
    }
    answer.extensions_mut().insert(AuditNote(accepted.message));
    Ok(answer)
}

/// List the unfinished and the remembered submissions, the latest first.
#[utoipa::path(get, path = "/api/v1/submissions", tag = "submissions", security(("token" = ["look"])),
    params(
        ("state" = Option<String>, Query, description = "Only those in one of these states, with commas between them: queued, opening, live, done, failed, cancelled, rejected"),
        ("name" = Option<String>, Query, description = "Only those of this name"),
        ("user" = Option<String>, Query, description = "Only those of this user"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "The most submissions of an answer; the default is 100"),
        ("before" = Option<u64>, Query, minimum = 0, description = "Only those with smaller numbers: what `before` of an answer says")),
    responses((status = 200, body = Submissions), Problems))]
pub(super) async fn list(State(app): State<AppState>, mut query: Query) -> ApiResult {
    let (name, user) = (query.text("name")?, query.text("user")?);
    let wanted = query.text("state")?.map(|names| states(&names));
    let wanted = wanted.transpose().map_err(|wrong| ApiError::bad(format!("state: {wrong}")))?;
    let most = query.read("limit", &format!("a whole number from 1 to {PAGE_MAX}"), |text| {
        text.parse().ok().filter(|most| (1..=PAGE_MAX).contains(most))
    })?;
    let before = query.read("before", "the number of a submission", |text| text.parse().ok())?;
    query.end(&["state", "name", "user", "limit", "before"])?;
    let most = most.unwrap_or(PAGE);
    // One more submission shows whether there is another page.
    let filter = Filter { states: wanted.unwrap_or_default(), name, user, most: most + 1, before };
    let mut submissions = app.handle.query(move |state, now| state.list(now, &filter)).await?;
    let has_more = submissions.len() > most;
    submissions.truncate(most);
    let before = submissions.last().filter(|_| has_more).map(|last| last.number);
    Ok(document(StatusCode::OK, &Submissions { submissions, before }))
}

/// Get a submission with its flows and their jobs.
#[utoipa::path(get, path = "/api/v1/submissions/{number}", tag = "submissions", security(("token" = ["look"])),
    params(("number" = u64, Path, description = "Its number"),
        ("wait" = Option<f64>, Query, minimum = 0, maximum = 300, description = "Seconds to wait until it is over at most")),
    responses((status = 200, body = Submission), Problems))]
pub(super) async fn show(
    State(app): State<AppState>,
    PathNumber(number): PathNumber,
    mut query: Query,
) -> ApiResult {
    let wait = query.seconds("wait", WAIT_MAX)?;
    query.end(&["wait"])?;
    if let Some(seconds) = wait {
        let over = app.handle.over(number);
        if let Ok(over) = tokio::time::timeout(Duration::from_secs_f64(seconds), over).await {
            return Ok(document(StatusCode::OK, &over?));
        }
    }
    Ok(document(StatusCode::OK, &app.handle.show(number).await?))
}

/// Change a deadline, weight or priority.
#[utoipa::path(patch, path = "/api/v1/submissions/{number}", tag = "submissions", security(("token" = ["submit"])),
    params(("number" = u64, Path, description = "Its number")), request_body = Change,
    responses((status = 200, body = Done), Problems))]
pub(super) async fn change(
    State(app): State<AppState>,
    Caller(principal): Caller,
    PathNumber(number): PathNumber,
    JsonBody(change): JsonBody<Change>,
) -> ApiResult {
    let of = app.handle.query(move |state, now| state.show(now, number)).await??;
    let command = app.handle.change(number, change, &of)?;
    acted(&app, principal, command).await
}

/// A submission or one of its flows, which a request changes.
pub(super) struct Target {
    app: AppState,
    principal: Principal,
    number: u64,
    flow: Option<String>,
}

impl FromRequestParts<AppState> for Target {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let Caller(principal) = Caller::from_request_parts(parts, app).await?;
        let PathNumber(number) = PathNumber::from_request_parts(parts, app).await?;
        let mut query = Query::from_request_parts(parts, app).await?;
        let flow = query.text("flow")?;
        query.end(&["flow"])?;
        Ok(Self { app: app.clone(), principal, number, flow })
    }
}

impl Target {
    async fn hold(self, held: bool) -> ApiResult {
        let Self { app, principal, number, flow } = self;
        acted(&app, principal, Command::Hold { number, flow, held }).await
    }
}

/// Run a submission that has ended again: all its jobs, those that failed or have not run, or one and those that depend on
/// it. It gets a new number.
#[utoipa::path(post, path = "/api/v1/submissions/{number}/rerun", tag = "submissions", security(("token" = ["submit"])),
    params(("number" = u64, Path, description = "Its number"),
        ("from_job" = Option<String>, Query, description = "Only this job (JOB or FLOW/JOB) and those that depend on it"),
        ("failed" = Option<bool>, Query, description = "Only jobs that have failed or have not run")),
    responses((status = 201, body = Accepted), Problems))]
pub(super) async fn rerun(
    State(app): State<AppState>,
    Caller(principal): Caller,
    PathNumber(number): PathNumber,
    mut query: Query,
) -> ApiResult {
    let from = query.text("from_job")?;
    let failed = query.read("failed", "true or false", |text| text.parse::<bool>().ok())?;
    query.end(&["from_job", "failed"])?;
    let choice = match (from, failed == Some(true)) {
        (Some(_), true) => {
            return Err(ApiError::bad("found from_job and failed, expected one of them".to_owned()));
        }
        (Some(job), false) => Rerun::From(job),
        (None, true) => Rerun::Failed,
        (None, false) => Rerun::All,
    };
    let command = app.handle.rerun(number, choice).await?;
    accepted(&app, principal, command).await
}

/// Executes a command that submits, and responds with the submission.
pub(super) async fn accepted(app: &AppState, principal: Principal, command: Command) -> ApiResult {
    let Answer::Accepted(accepted) = app.handle.execute(principal, command).await? else {
        unreachable!("invariant: what is submitted is accepted or refused")
    };
    let mut answer = document(StatusCode::CREATED, &*accepted);
    answer.extensions_mut().insert(AuditNote(accepted.message));
    Ok(answer)
}

/// Cancel a submission, or one of its flows. Its running tasks are stopped.
#[utoipa::path(post, path = "/api/v1/submissions/{number}/cancel", tag = "submissions", security(("token" = ["submit"])),
    params(("number" = u64, Path, description = "Its number"), ("flow" = Option<String>, Query, description = "The flow; all of them if none is named")),
    responses((status = 200, body = Done), Problems))]
pub(super) async fn cancel(Target { app, principal, number, flow }: Target) -> ApiResult {
    acted(&app, principal, Command::Cancel { number, flow }).await
}

/// Hold a submission, or one of its flows: no more of its tasks start.
#[utoipa::path(post, path = "/api/v1/submissions/{number}/hold", tag = "submissions", security(("token" = ["submit"])),
    params(("number" = u64, Path, description = "Its number"), ("flow" = Option<String>, Query, description = "The flow; all of them if none is named")),
    responses((status = 200, body = Done), Problems))]
pub(super) async fn hold(target: Target) -> ApiResult {
    target.hold(true).await
}

/// Resume a held submission, or one of its flows.
#[utoipa::path(post, path = "/api/v1/submissions/{number}/unhold", tag = "submissions", security(("token" = ["submit"])),
    params(("number" = u64, Path, description = "Its number"), ("flow" = Option<String>, Query, description = "The flow; all of them if none is named")),
    responses((status = 200, body = Done), Problems))]
pub(super) async fn unhold(target: Target) -> ApiResult {
    target.hold(false).await
}
