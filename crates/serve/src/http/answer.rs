//! Parameters and documents of requests, and the responses: documents, or a problem document for every error.

use std::borrow::Cow;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, MatchedPath, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;
use slackline_model::printable::escaped_line;
use slackline_trace::{Document, Format};
use utoipa::IntoResponses;

use super::AppState;
use crate::api::{Done, Problem};
use crate::state::{Refusal, RefusalKind};

/// The message of a response in the audit log.
#[derive(Clone, Debug)]
pub(super) struct AuditNote(pub(super) String);

/// An error response.
#[derive(Clone, Debug)]
pub(super) struct ApiError {
    pub(super) status: StatusCode,
    pub(super) message: String,
    /// The time after which the client may retry, seconds.
    pub(super) retry_after: Option<u64>,
}

/// A response, or an error response.
pub(super) type ApiResult<T = Response> = Result<T, ApiError>;

/// A text response.
pub(super) fn text(kind: &'static str, text: impl Into<String>) -> Response {
    ([(header::CONTENT_TYPE, kind)], text.into()).into_response()
}

impl ApiError {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), retry_after: None }
    }

    /// A malformed request.
    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let (status, retry_after) = match refusal.kind {
            RefusalKind::Invalid => (StatusCode::UNPROCESSABLE_ENTITY, None),
            RefusalKind::Forbidden => (StatusCode::FORBIDDEN, None),
            RefusalKind::NotFound => (StatusCode::NOT_FOUND, None),
            RefusalKind::Conflict => (StatusCode::CONFLICT, None),
            RefusalKind::TooMany(seconds) => (StatusCode::TOO_MANY_REQUESTS, Some(seconds)),
            RefusalKind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, Some(5)),
        };
        Self { status, message: refusal.message, retry_after }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut answer = document(self.status, &Problem { message: self.message.clone() });
        let headers = answer.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        // The unread rest of a body must not be parsed as the next request.
        if matches!(self.status, StatusCode::REQUEST_TIMEOUT | StatusCode::PAYLOAD_TOO_LARGE) {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        answer.extensions_mut().insert(AuditNote(self.message));
        answer
    }
}

/// A document as JSON, with escapes for control characters: clients may print it on a terminal.
pub(super) fn json(what: &impl Serialize) -> String {
    let text = serde_json::to_string(what).expect("invariant: documents of the API can be written as JSON");
    match escaped_line(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(escaped) => escaped,
    }
}

pub(super) fn document(status: StatusCode, what: &impl Serialize) -> Response {
    let text = json(what);
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// The response of a successful command.
pub(super) fn done(message: String) -> Response {
    let mut answer = document(StatusCode::OK, &Done { message: message.clone() });
    answer.extensions_mut().insert(AuditNote(message));
    answer
}

/// The JSON body of a request.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<AppState> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &AppState) -> Result<Self, ApiError> {
        let kind = request.headers().get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or("?"));
        let is_json = |kind: &str| {
            kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
        };
        if !kind.is_some_and(is_json) {
            let found = kind.map_or("no content-type".to_owned(), |kind| format!("content-type {kind}"));
            return Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                format!("found {found}, expected application/json"),
            ));
        }
        let bytes = whole(request.into_body(), app.setup.bounds.body_bytes, app.setup.bounds.body).await?;
        let text = String::from_utf8(bytes).map_err(|error| {
            ApiError::bad(format!("request: found bytes that are not UTF-8: {}", error.utf8_error()))
        })?;
        let read = Document::new("request".to_owned(), text, Format::Json).read();
        read.map(Self).map_err(|error| ApiError::bad(error.to_string()))
    }
}

/// Reads a body of at most `most` bytes within `patience`.
async fn whole(body: Body, most: usize, patience: Duration) -> ApiResult<Vec<u8>> {
    let collected = tokio::time::timeout(patience, Limited::new(body, most).collect()).await;
    let Ok(collected) = collected else {
        let message = format!("the request timed out after {} s", patience.as_secs());
        return Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, message));
    };
    match collected {
        Ok(whole) => Ok(whole.to_bytes().to_vec()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("found a document of more than {most} bytes, expected at most {most}"),
        )),
        Err(error) => Err(ApiError::bad(format!("the request cannot be read: {error}"))),
    }
}

/// The number of a submission, from the path.
pub(super) struct PathNumber(pub(super) u64);

impl FromRequestParts<AppState> for PathNumber {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let PathName(text) = PathName::from_request_parts(parts, app).await?;
        let number = text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
        let wrong = || ApiError::bad(format!("found {text:?}, expected the number of a submission"));
        number.map(Self).ok_or_else(wrong)
    }
}

/// The last parameter of the path.
pub(super) struct PathName(pub(super) String);

impl FromRequestParts<AppState> for PathName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiError> {
        let params = RawPathParams::from_request_parts(parts, app).await;
        let params =
            params.map_err(|_| ApiError::bad("path: found bytes that are not UTF-8, expected a name"))?;
        let last = params.iter().last().map(|(_, value)| value.to_owned());
        last.map(Self).ok_or_else(|| ApiError::bad("path: missing name"))
    }
}

/// The query parameters of a request.
pub(super) struct Query(Vec<(String, String)>);

impl FromRequestParts<AppState> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, ApiError> {
        let text = parts.uri.query().unwrap_or_default();
        Ok(Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect()))
    }
}

impl Query {
    /// Removes and returns a parameter.
    ///
    /// # Errors
    /// The parameter is given twice.
    pub(super) fn text(&mut self, name: &str) -> ApiResult<Option<String>> {
        let at = self.0.iter().position(|(said, _)| said == name);
        let value = at.map(|at| self.0.remove(at).1);
        if self.0.iter().any(|(said, _)| said == name) {
            return Err(ApiError::bad(format!("{name}: given twice, expected once")));
        }
        Ok(value)
    }

    /// Removes a parameter, and parses it with `read`.
    ///
    /// # Errors
    /// The parameter is given twice or is invalid.
    pub(super) fn read<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> ApiResult<Option<T>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let wrong = || ApiError::bad(format!("{name}: found {text:?}, expected {expected}"));
        read(&text).map(Some).ok_or_else(wrong)
    }

    /// Removes a parameter, and parses it as seconds.
    ///
    /// # Errors
    /// See [`Self::read`].
    pub(super) fn seconds(&mut self, name: &str, most: f64) -> ApiResult<Option<f64>> {
        let read = |text: &str| text.parse().ok().filter(|seconds| (0.0..=most).contains(seconds));
        self.read(name, &format!("seconds from 0 to {most}"), read)
    }

    /// Refuses parameters that are left.
    ///
    /// # Errors
    /// A parameter is unknown. `known` are the parameters of the operation, for the message.
    pub(super) fn end(self, known: &[&str]) -> ApiResult<()> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(ApiError::bad(slackline::names::unknown("parameter", name, known))),
        }
    }
}

/// The response for an unknown path.
pub(super) async fn nothing_there(request: Request) -> ApiError {
    let path = request.uri().path();
    ApiError::new(StatusCode::NOT_FOUND, format!("unknown path {path}; /openapi.json lists all paths"))
}

/// The response for a method that the path does not support.
pub(super) async fn other_method(request: Request) -> ApiError {
    let path = request.extensions().get::<MatchedPath>().map_or(request.uri().path(), MatchedPath::as_str);
    let message = format!("{path} does not support {}", request.method());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, message)
}

/// The error responses of all operations.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it is a part of the description alone")]
pub(super) enum Problems {
    /// The request is malformed.
    #[response(status = 400)]
    Bad(Problem),
    /// The token is missing or unknown.
    #[response(status = 401)]
    Unknown(Problem),
    /// The client lacks the role for the operation, or the request comes from a page of another site.
    #[response(status = 403)]
    Forbidden(Problem),
    /// The path or the named object does not exist.
    #[response(status = 404)]
    NotFound(Problem),
    /// The path does not support the method; `Allow` lists the supported ones.
    #[response(status = 405)]
    Method(Problem),
    /// The request did not end in time.
    #[response(status = 408)]
    Slow(Problem),
    /// The operation conflicts with the current state.
    #[response(status = 409)]
    Conflict(Problem),
    /// The document is too large.
    #[response(status = 413)]
    Large(Problem),
    /// The document is not JSON.
    #[response(status = 415)]
    Kind(Problem),
    /// The request is invalid. For example, its flow file has errors; then the message has their lines.
    #[response(status = 422)]
    Invalid(Problem),
    /// A limit is reached; `Retry-After` has the seconds until a retry.
    #[response(status = 429)]
    TooMany(Problem),
    /// The service is not available: its disk is full, it is stopping, or it has too many connections.
    #[response(status = 503)]
    Unavailable(Problem),
}
