//! The routes: the role that each needs, and the OpenAPI description, from one list.

use axum::response::Response;
use axum::{Router, middleware};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Info, License, OpenApi, OpenApiBuilder};
use utoipa::{PartialSchema, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answer::{Problems, nothing_there, other_method, text};
use super::guard::{door, require};
use super::{AppState, events, page, recurrences, service, submissions};
use crate::api::{Problem, StreamStart};
use crate::http::explain;
use crate::state::auth::Role;

/// The introduction of the OpenAPI description.
const ABOUT: &str = "\
The scheduler service of Slackline. A client authenticates with a token (`authorization: Bearer TOKEN`), or as a user of this machine \
over the Unix socket. The `security` of an operation names the role that it needs: `look`, `submit` (to change only the client's own \
submissions) or `operate`. Each role includes those before it. The document of every error is a `Problem`. Only a request that cannot be \
read (its head is too large, or it is not HTTP) gets a status without a document.";

/// All routes with their description.
fn all() -> OpenApiRouter<AppState> {
    let open = OpenApiRouter::new()
        .routes(routes!(service::health))
        .routes(routes!(service::ready))
        .routes(routes!(description_document));
    let look = OpenApiRouter::new()
        .routes(routes!(service::me))
        .routes(routes!(service::service))
        .routes(routes!(service::load))
        .routes(routes!(service::timeline))
        .routes(routes!(service::alerts))
        .routes(routes!(service::metrics))
        .routes(routes!(events::events))
        .routes(routes!(submissions::list))
        .routes(routes!(submissions::show))
        .routes(routes!(explain::explain))
        .routes(routes!(explain::logs))
        .routes(routes!(recurrences::list))
        .routes(routes!(recurrences::times));
    let submit = OpenApiRouter::new()
        .routes(routes!(submissions::submit))
        .routes(routes!(submissions::change))
        .routes(routes!(submissions::rerun))
        .routes(routes!(submissions::cancel))
        .routes(routes!(submissions::hold))
        .routes(routes!(submissions::unhold))
        .routes(routes!(recurrences::run))
        .routes(routes!(recurrences::remove))
        .routes(routes!(recurrences::pause))
        .routes(routes!(recurrences::unpause));
    let operate = OpenApiRouter::new().routes(routes!(service::drain)).routes(routes!(service::undrain));
    let needs = |router: OpenApiRouter<AppState>, role: Role| {
        router.route_layer(middleware::from_fn_with_state(role, require))
    };
    OpenApiRouter::with_openapi(about())
        .merge(open)
        .merge(needs(look, Role::Look))
        .merge(needs(submit, Role::Submit))
        .merge(needs(operate, Role::Operate))
}

fn about() -> OpenApi {
    let mut info = Info::new("Slackline", env!("CARGO_PKG_VERSION"));
    info.description = Some(ABOUT.to_owned());
    info.license = Some(License::new("Apache-2.0"));
    let mut about = OpenApiBuilder::new().info(info).build();
    let token = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
    let components = about.components.get_or_insert_default();
    components.security_schemes.insert("token".to_owned(), token.into());
    // No route has these types as its body.
    components.schemas.insert(Problem::name().into_owned(), Problem::schema());
    components.schemas.insert(StreamStart::name().into_owned(), StreamStart::schema());
    about
}

/// The OpenAPI description of the API, as JSON.
pub fn description() -> String {
    let (_, description) = all().split_for_parts();
    let mut text = serde_json::to_string_pretty(&description)
        .expect("invariant: the description can be written as JSON");
    text.push('\n');
    text
}

/// Get the OpenAPI description of this API.
#[utoipa::path(get, path = "/openapi.json", tag = "health", operation_id = "description",
    responses((status = 200, body = serde_json::Value), Problems))]
async fn description_document() -> Response {
    text("application/json", description())
}

/// The router of all requests.
pub(super) fn router(app: &AppState) -> Router {
    let (router, _) = all().split_for_parts();
    page::with_assets(router)
        .fallback(nothing_there)
        .method_not_allowed_fallback(other_method)
        .layer(middleware::from_fn_with_state(app.clone(), door))
        .with_state(app.clone())
}
