//! What recurs: listed, paused and removed.

use axum::extract::State;
use axum::http::StatusCode;

use super::House;
use super::answer::{Answered, Named, Problems, document};
use super::guard::Asking;
use super::service::acted;
use crate::api::{Done, Recurrences};
use crate::desk::{Answer, Ask};

/// Everything that recurs.
#[utoipa::path(get, path = "/api/v1/recurrences", tag = "recurrences", security(("token" = ["look"])),
    responses((status = 200, body = Recurrences), Problems))]
pub(super) async fn list(State(house): State<House>, Asking(who): Asking) -> Answered {
    match house.front.ask(who, Ask::Recurrences).await? {
        Answer::Recurrences(recurrences) => Ok(document(StatusCode::OK, &Recurrences { recurrences })),
        other => unreachable!("invariant: what recurs was asked for, and not {other:?}"),
    }
}

/// It recurs no more; what was submitted of it goes on.
#[utoipa::path(delete, path = "/api/v1/recurrences/{name}", tag = "recurrences", security(("token" = ["submit"])),
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Done), Problems))]
pub(super) async fn remove(State(house): State<House>, Asking(who): Asking, Named(name): Named) -> Answered {
    acted(&house, who, Ask::Remove(name)).await
}

/// Its times pass without being submitted until it is let go on.
#[utoipa::path(post, path = "/api/v1/recurrences/{name}/pause", tag = "recurrences", security(("token" = ["submit"])),
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Done), Problems))]
pub(super) async fn pause(State(house): State<House>, Asking(who): Asking, Named(name): Named) -> Answered {
    acted(&house, who, Ask::Pause { name, paused: true }).await
}

/// It goes on with its next time.
#[utoipa::path(post, path = "/api/v1/recurrences/{name}/unpause", tag = "recurrences", security(("token" = ["submit"])),
    params(("name" = String, Path, description = "Its name")),
    responses((status = 200, body = Done), Problems))]
pub(super) async fn unpause(State(house): State<House>, Asking(who): Asking, Named(name): Named) -> Answered {
    acted(&house, who, Ask::Pause { name, paused: false }).await
}
