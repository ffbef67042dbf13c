//! Submissions: taken in, listed, shown, changed, held and cancelled.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};

use super::House;
use super::answer::{Answered, Number, Problems, Query, Refused, Said, Sent, document};
use super::guard::Asking;
use super::service::acted;
use crate::api::{Accepted, Change, Done, Submission, Submissions, Submit};
use crate::desk::{Answer, Ask};
use crate::front::states;
use crate::who::Who;

/// Submissions of a page.
const PAGE: usize = 100;
const PAGE_MAX: usize = 1_000;

/// The longest that an answer is waited for, seconds.
const WAIT_MAX: f64 = 300.0;

/// Takes in a flow file, to be run now, when something is there, or again and again. What is answered is on disk.
#[utoipa::path(post, path = "/api/v1/submissions", tag = "submissions", security(("token" = ["submit"])),
    params(("wait" = Option<f64>, Query, minimum = 0, maximum = 300, description = "Seconds to wait for the prediction at most")),
    request_body = Submit,
    responses((status = 201, body = Accepted, description = "It is submitted, or recurs from now on"),
        (status = 200, body = Accepted, description = "It is left out, because another of its name is not over"), Problems))]
pub(super) async fn submit(
    State(house): State<House>,
    Asking(who): Asking,
    mut query: Query,
    Sent(submit): Sent<Submit>,
) -> Answered {
    let wait = query.seconds("wait", WAIT_MAX)?;
    query.end(&["wait"])?;
    let front = house.front.clone();
    let read = tokio::task::spawn_blocking(move || front.submission(submit)).await;
    let ended = || Refused::new(StatusCode::SERVICE_UNAVAILABLE, "the service is about to end");
    let ask = read.map_err(|_| ended())??;
    let Answer::Accepted(accepted) = house.front.ask(who.clone(), ask).await? else {
        unreachable!("invariant: what is submitted is accepted or refused")
    };
    let mut accepted: Accepted = *accepted;
    if let (Some(seconds), Some(number)) = (wait, accepted.number) {
        accepted.prediction = house.front.prediction(&who, number, seconds).await;
    }
    let is_there = accepted.number.is_some() || accepted.next.is_some();
    let mut answer = document(if is_there { StatusCode::CREATED } else { StatusCode::OK }, &accepted);
    if let Some(number) = accepted.number {
        let there = HeaderValue::from_str(&format!("/api/v1/submissions/{number}"));
        answer.headers_mut().extend(there.ok().map(|there| (header::LOCATION, there)));
    }
    answer.extensions_mut().insert(Said(accepted.message));
    Ok(answer)
}

/// Submissions that are not over, and those that are remembered; the latest first.
#[utoipa::path(get, path = "/api/v1/submissions", tag = "submissions", security(("token" = ["look"])),
    params(
        ("state" = Option<String>, Query, description = "Only those in one of these states, with commas between them: queued, opening, live, done, failed, cancelled, rejected"),
        ("name" = Option<String>, Query, description = "Only those of this name"),
        ("user" = Option<String>, Query, description = "Only those of this user"),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 1000, description = "At most so many; 100 if nothing is said"),
        ("before" = Option<u64>, Query, minimum = 0, description = "Only those with smaller numbers: what `before` of an answer says")),
    responses((status = 200, body = Submissions), Problems))]
pub(super) async fn list(State(house): State<House>, Asking(who): Asking, mut query: Query) -> Answered {
    let (name, user) = (query.text("name")?, query.text("user")?);
    let wanted = query.text("state")?.map(|names| states(&names));
    let wanted = wanted.transpose().map_err(|wrong| Refused::bad(format!("state: {wrong}")))?;
    let most = query.read("limit", &format!("a whole number from 1 to {PAGE_MAX}"), |text| {
        text.parse().ok().filter(|most| (1..=PAGE_MAX).contains(most))
    })?;
    let before = query.read("before", "the number of a submission", |text| text.parse().ok())?;
    query.end(&["state", "name", "user", "limit", "before"])?;
    let most = most.unwrap_or(PAGE);
    // One more says whether there are more.
    let ask = Ask::List { states: wanted.unwrap_or_default(), name, user, most: most + 1, before };
    let Answer::Submissions(mut submissions) = house.front.ask(who, ask).await? else {
        unreachable!("invariant: a list was asked for")
    };
    let has_more = submissions.len() > most;
    submissions.truncate(most);
    let before = submissions.last().filter(|_| has_more).map(|last| last.number);
    Ok(document(StatusCode::OK, &Submissions { submissions, before }))
}

/// A submission with its flows and their jobs.
#[utoipa::path(get, path = "/api/v1/submissions/{number}", tag = "submissions", security(("token" = ["look"])),
    params(("number" = u64, Path, description = "Its number"),
        ("wait" = Option<f64>, Query, minimum = 0, maximum = 300, description = "Seconds to wait until it is over at most")),
    responses((status = 200, body = Submission), Problems))]
pub(super) async fn show(
    State(house): State<House>,
    Asking(who): Asking,
    Number(number): Number,
    mut query: Query,
) -> Answered {
    let wait = query.seconds("wait", WAIT_MAX)?;
    query.end(&["wait"])?;
    if let Some(seconds) = wait {
        let over = house.front.over(&who, number);
        if let Ok(over) = tokio::time::timeout(Duration::from_secs_f64(seconds), over).await {
            return Ok(document(StatusCode::OK, &over?));
        }
    }
    Ok(document(StatusCode::OK, &house.front.show(who, number).await?))
}

async fn shown(house: &House, who: Who, number: u64) -> Answered<Submission> {
    match house.front.ask(who, Ask::Show(number)).await? {
        Answer::Submission(shown) => Ok(*shown),
        other => unreachable!("invariant: a submission was asked for, and not {other:?}"),
    }
}

/// Another deadline, weight or priority.
#[utoipa::path(patch, path = "/api/v1/submissions/{number}", tag = "submissions", security(("token" = ["submit"])),
    params(("number" = u64, Path, description = "Its number")), request_body = Change,
    responses((status = 200, body = Done), Problems))]
pub(super) async fn change(
    State(house): State<House>,
    Asking(who): Asking,
    Number(number): Number,
    Sent(change): Sent<Change>,
) -> Answered {
    let of = shown(&house, who.clone(), number).await?;
    let ask = house.front.change(number, change, &of)?;
    acted(&house, who, ask).await
}

/// The flow that is named, if one is.
fn flow(mut query: Query) -> Answered<Option<String>> {
    let flow = query.text("flow")?;
    query.end(&["flow"])?;
    Ok(flow)
}

/// Cancels a submission, or a flow of it. What runs of it is stopped.
#[utoipa::path(post, path = "/api/v1/submissions/{number}/cancel", tag = "submissions", security(("token" = ["submit"])),
    params(("number" = u64, Path, description = "Its number"), ("flow" = Option<String>, Query, description = "The flow; all of them if none is named")),
    responses((status = 200, body = Done), Problems))]
pub(super) async fn cancel(
    State(house): State<House>,
    Asking(who): Asking,
    Number(number): Number,
    query: Query,
) -> Answered {
    acted(&house, who, Ask::Cancel { number, flow: flow(query)? }).await
}

/// Holds a submission, or a flow of it: nothing more of it starts.
#[utoipa::path(post, path = "/api/v1/submissions/{number}/hold", tag = "submissions", security(("token" = ["submit"])),
    params(("number" = u64, Path, description = "Its number"), ("flow" = Option<String>, Query, description = "The flow; all of them if none is named")),
    responses((status = 200, body = Done), Problems))]
pub(super) async fn hold(
    State(house): State<House>,
    Asking(who): Asking,
    Number(number): Number,
    query: Query,
) -> Answered {
    acted(&house, who, Ask::Hold { number, flow: flow(query)?, held: true }).await
}

/// Lets a submission go, or a flow of it.
#[utoipa::path(post, path = "/api/v1/submissions/{number}/unhold", tag = "submissions", security(("token" = ["submit"])),
    params(("number" = u64, Path, description = "Its number"), ("flow" = Option<String>, Query, description = "The flow; all of them if none is named")),
    responses((status = 200, body = Done), Problems))]
pub(super) async fn unhold(
    State(house): State<House>,
    Asking(who): Asking,
    Number(number): Number,
    query: Query,
) -> Answered {
    acted(&house, who, Ask::Hold { number, flow: flow(query)?, held: false }).await
}
