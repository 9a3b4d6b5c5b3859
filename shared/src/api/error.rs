//! Every error the server answers with, from one list.

use serde::{Deserialize, Serialize};

/// What kind of trouble an error is; decides what a client should do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorType {
    /// The request itself is wrong: change it.
    InvalidRequest,
    /// The caller may not do this: bring a key, or come from the right place.
    Auth,
    /// A named limit was passed: send less.
    Limit,
    /// The thing asked for is not in a state that allows it.
    Conflict,
    /// Too busy, or not ready: try again after `Retry-After`.
    Unavailable,
    /// Our fault.
    Internal,
}

macro_rules! error_codes {
    ($($(#[doc = $doc:literal])* $name:ident = ($status:literal, $kind:ident),)*) => {
        /// Every error there is, by the name it has on the wire.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(rename_all = "snake_case")]
        pub enum ErrorCode {
            $($(#[doc = $doc])* $name,)*
        }

        impl ErrorCode {
            /// Every code, in the order the API page lists them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The HTTP status it travels with.
            pub fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// What kind of trouble it is.
            pub fn kind(self) -> ErrorType {
                match self { $(Self::$name => ErrorType::$kind,)* }
            }

            /// One sentence for the API page.
            pub fn explanation(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc,)*),)* }
            }
        }
    };
}

error_codes! {
    /// The body is not valid JSON, or not of the shape the route takes.
    InvalidJson = (400, InvalidRequest),
    /// This route takes `Content-Type: application/json` and nothing else.
    UnsupportedMediaType = (415, InvalidRequest),
    /// The body's `Content-Encoding` is none of identity and gzip.
    UnsupportedEncoding = (415, InvalidRequest),
    /// A path or query parameter is missing or out of its range.
    InvalidParameter = (400, InvalidRequest),
    /// A file name that leaves its folder, or is not a plain name.
    InvalidPath = (400, InvalidRequest),
    /// There is no such route.
    RouteNotFound = (404, InvalidRequest),
    /// The route exists, the method does not.
    MethodNotAllowed = (405, InvalidRequest),
    /// No API key was given, or not the right one.
    Unauthorized = (401, Auth),
    /// The `Host` header names another machine.
    ForbiddenHost = (403, Auth),
    /// The request comes from another site.
    ForbiddenOrigin = (403, Auth),
    /// The body is larger than the limit, also after decompression.
    BodyTooLarge = (413, Limit),
    /// The request's header fields are larger than the limit.
    HeadersTooLarge = (431, Limit),
    /// The address is longer than the limit.
    UriTooLong = (414, Limit),
    /// More documents in one batch than the limit.
    BatchTooLarge = (413, Limit),
    /// A text longer than the limit.
    TextTooLong = (413, Limit),
    /// `top` is not between 1 and the limit.
    TopOutOfRange = (400, Limit),
    /// The upload is larger than the limit.
    UploadTooLarge = (413, Limit),
    /// The request did not arrive, or was not answered, within the time limit.
    Timeout = (408, Limit),
    /// Too many requests are waiting already.
    TooManyRequests = (429, Unavailable),
    /// The server is stopping or its queue is full.
    Busy = (503, Unavailable),
    /// No model is published yet, so nothing can be tagged.
    NoActiveModel = (409, Conflict),
    /// There is no model of that id.
    ModelNotFound = (404, InvalidRequest),
    /// The model is active; activate another one first.
    ModelInUse = (409, Conflict),
    /// There is no earlier model to roll back to.
    NothingToRollBack = (409, Conflict),
    /// The model's files cannot be read.
    ModelUnreadable = (409, Conflict),
    /// The model has no file of that name.
    FileNotFound = (404, InvalidRequest),
    /// There is no cluster of that number in the model.
    ClusterNotFound = (404, InvalidRequest),
    /// There is no label of that number in the model.
    LabelNotFound = (404, InvalidRequest),
    /// There is no corpus of that id.
    CorpusNotFound = (404, InvalidRequest),
    /// A run uses the corpus; delete the run first.
    CorpusInUse = (409, Conflict),
    /// Not one document could be read from the upload.
    CorpusUnreadable = (422, InvalidRequest),
    /// There is no feedback of that id.
    FeedbackNotFound = (404, InvalidRequest),
    /// There is no run of that id.
    RunNotFound = (404, InvalidRequest),
    /// The run is over already.
    RunNotRunning = (409, Conflict),
    /// The run is queued or running.
    RunStillRunning = (409, Conflict),
    /// Only an interrupted, cancelled or failed run can be resumed.
    RunNotResumable = (409, Conflict),
    /// Only a finished run can be published.
    RunNotPublishable = (409, Conflict),
    /// The settings of a run are not valid.
    InvalidSettings = (422, InvalidRequest),
    /// The disk of the data directory is full.
    DiskFull = (507, Internal),
    /// Something went wrong on our side; the log has the request id.
    Internal = (500, Internal),
}

impl ErrorCode {
    /// The name on the wire.
    pub fn name(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(name)) => name,
            _ => unreachable!("a unit variant serialises as a string"),
        }
    }
}

/// The body of every answer that is not a success.
///
/// ```
/// use gnnxml_shared::api::{ErrorBody, ErrorCode};
/// let body = ErrorBody::new(ErrorCode::RunNotFound, "there is no run 7");
/// assert_eq!(
///     serde_json::to_string(&body).unwrap(),
///     r##"{"message":"there is no run 7","code":"run_not_found","type":"invalid_request","link":"/api#run_not_found"}"##
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorBody {
    /// What was found, what was expected, what to do.
    pub message: String,
    pub code: ErrorCode,
    #[serde(rename = "type")]
    pub kind: ErrorType,
    /// Where this code is explained.
    pub link: String,
}

impl ErrorBody {
    /// The body for `code` with a message about this very case.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            code,
            kind: code.kind(),
            link: format!("/api#{}", code.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_an_explanation_and_an_error_status() {
        for &code in ErrorCode::ALL {
            assert!(!code.explanation().trim().is_empty(), "{code:?}");
            assert!((400..600).contains(&code.status()), "{code:?}");
        }
    }
}
