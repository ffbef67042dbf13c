//! The service itself: how it fares, what it has done, and whether it goes on.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::House;
use super::answer::{Answered, Problems, Query, Refused, document, done};
use super::guard::Asking;
use super::routes::{self, text};
use crate::api::{self, Alerts, Done, Health, Load, Me, Timeline};
use crate::desk::{Answer, Ask};
use crate::who::{Role, Who};
use crate::{Moment, SECOND, moment};

/// How long the service may take to say that it is there.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

/// The text format of Prometheus.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How far back attempts are shown if nothing is said.
const BACK: Moment = 3600 * SECOND;

fn ok() -> Response {
    document(StatusCode::OK, &Health { status: "ok".to_owned() })
}

/// Whether this process answers.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, body = Health), Problems))]
pub(super) async fn health() -> Response {
    ok()
}

/// Whether the service can take in submissions: it answers, nothing is wrong with it, and no thread that everything waits for is blocked.
#[utoipa::path(get, path = "/readyz", tag = "health", responses((status = 200, body = Health), Problems))]
pub(super) async fn ready(State(house): State<House>) -> Answered {
    let unavailable = |message: &str| Refused::new(StatusCode::SERVICE_UNAVAILABLE, message);
    // What it is stands in the log of the service: paths are not for everybody.
    if house.front.blocked.get().is_some() {
        return Err(unavailable("the service is blocked"));
    }
    let asked = house.front.ask(Who::new("http", Role::Look), Ask::Service);
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(Answer::Service(service))) => match &service.trouble {
            None => Ok(ok()),
            // What it is stands in the document of the service, for those who may look.
            Some(_) => Err(unavailable("something is wrong with the service")),
        },
        Ok(Err(refusal)) => Err(refusal.into()),
        _ => Err(unavailable("the service is busy")),
    }
}

/// The description of this API.
#[utoipa::path(get, path = "/openapi.json", tag = "health", responses((status = 200, body = serde_json::Value), Problems))]
pub(super) async fn description() -> Response {
    text("application/json", routes::description())
}

/// What Prometheus scrapes.
#[utoipa::path(get, path = "/metrics", tag = "service", security(("token" = ["look"])),
    responses((status = 200, body = String, content_type = "text/plain"), Problems))]
pub(super) async fn metrics(State(house): State<House>, Asking(who): Asking) -> Answered {
    let service = asked(&house, who).await?;
    Ok(text(PROMETHEUS, house.metrics.text(&service, &house.others_count())))
}

/// The service as it is now.
async fn asked(house: &House, who: Who) -> Answered<api::Service> {
    match house.front.ask(who, Ask::Service).await? {
        Answer::Service(service) => Ok(*service),
        other => unreachable!("invariant: the service was asked for, and not {other:?}"),
    }
}

/// Who asks, and what they may.
#[utoipa::path(get, path = "/api/v1/me", tag = "service", security(("token" = ["look"])),
    responses((status = 200, body = Me), Problems))]
pub(super) async fn me(Asking(Who { name, role, .. }): Asking) -> Response {
    document(StatusCode::OK, &Me { name, role })
}

/// The service as it is now.
#[utoipa::path(get, path = "/api/v1/service", tag = "service", security(("token" = ["look"])),
    responses((status = 200, body = api::Service), Problems))]
pub(super) async fn service(State(house): State<House>, Asking(who): Asking) -> Answered {
    Ok(document(StatusCode::OK, &asked(&house, who).await?))
}

/// What was at work and waited, over the last day.
#[utoipa::path(get, path = "/api/v1/load", tag = "service", security(("token" = ["look"])),
    params(("since" = Option<jiff::Timestamp>, Query, description = "The moments from then on; by default all that are known")),
    responses((status = 200, body = Load), Problems))]
pub(super) async fn load(State(house): State<House>, Asking(who): Asking, query: Query) -> Answered {
    match house.front.ask(who, Ask::Load(since(query)?)).await? {
        Answer::Load(load) => Ok(document(StatusCode::OK, &load)),
        other => unreachable!("invariant: the load was asked for, and not {other:?}"),
    }
}

/// The alerts that were told last: at most a thousand of those that are not too old, before the service was started again too.
#[utoipa::path(get, path = "/api/v1/alerts", tag = "service", security(("token" = ["look"])),
    responses((status = 200, body = Alerts), Problems))]
pub(super) async fn alerts(State(house): State<House>, Asking(who): Asking) -> Answered {
    match house.front.ask(who, Ask::Alerts).await? {
        Answer::Alerts(alerts) => Ok(document(StatusCode::OK, &Alerts { alerts })),
        other => unreachable!("invariant: alerts were asked for, and not {other:?}"),
    }
}

/// The moment that is asked since, if one is.
fn since(mut query: Query) -> Answered<Option<Moment>> {
    let since = query
        .read("since", "a time such as 2026-03-01T06:00:00Z", |text| text.parse::<jiff::Timestamp>().ok())?;
    query.end(&["since"])?;
    Ok(since.map(moment))
}

/// Attempts that ended lately and those at work now, by when they started.
#[utoipa::path(get, path = "/api/v1/timeline", tag = "service", security(("token" = ["look"])),
    params(("since" = Option<jiff::Timestamp>, Query, description = "Of those that have ended: those that ended then or later; by default within the last hour")),
    responses((status = 200, body = Timeline), Problems))]
pub(super) async fn timeline(State(house): State<House>, query: Query) -> Answered {
    let since = since(query)?.unwrap_or_else(|| house.front.now().saturating_sub(BACK));
    Ok(document(StatusCode::OK, &house.front.timeline(since)))
}

/// Nothing new begins from now on: what is at work comes to its end, and what is submitted waits.
#[utoipa::path(post, path = "/api/v1/drain", tag = "service", security(("token" = ["operate"])),
    responses((status = 200, body = Done), Problems))]
pub(super) async fn drain(State(house): State<House>, Asking(who): Asking) -> Answered {
    acted(&house, who, Ask::Drain(true)).await
}

/// Submissions begin again.
#[utoipa::path(post, path = "/api/v1/undrain", tag = "service", security(("token" = ["operate"])),
    responses((status = 200, body = Done), Problems))]
pub(super) async fn undrain(State(house): State<House>, Asking(who): Asking) -> Answered {
    acted(&house, who, Ask::Drain(false)).await
}

/// Something is done, and that is answered in words.
pub(super) async fn acted(house: &House, who: Who, ask: Ask) -> Answered {
    match house.front.ask(who, ask).await? {
        Answer::Done(message) => Ok(done(message)),
        other => unreachable!("invariant: what is done is said in words, and not {other:?}"),
    }
}
