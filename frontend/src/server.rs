//! Asking the server: typed answers, and troubles that say what to do.

use gloo::net::http::{Method, RequestBuilder, Response};
use gnnxml_shared::api::{ErrorBody, ErrorCode};
use serde::{Serialize, de::DeserializeOwned};

/// Why an answer did not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// What happened and what to do, for people.
    pub(crate) message: String,
    /// The server's own name for it; none when the server was not reached.
    pub(crate) code: Option<ErrorCode>,
    /// Where the code is explained.
    pub(crate) link: Option<String>,
}

impl Trouble {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            code: None,
            link: None,
        }
    }

    fn unreachable() -> Self {
        Self::new("The server does not answer. Start it with `gnnxml serve`, then try again.")
    }

    /// Reads the server's error body; `status` speaks when the body is not ours.
    pub(crate) fn of_body(status: u16, body: &str) -> Self {
        match serde_json::from_str::<ErrorBody>(body) {
            Ok(error) => Self {
                message: error.message,
                code: Some(error.code),
                link: Some(error.link),
            },
            Err(_) => Self::new(format!(
                "The server answered with status {status} and no explanation."
            )),
        }
    }
}

/// `GET` and read the answer as `T`.
pub(crate) async fn get<T: DeserializeOwned>(url: &str) -> Result<T, Trouble> {
    let response = RequestBuilder::new(url)
        .method(Method::GET)
        .send()
        .await
        .map_err(|_| Trouble::unreachable())?;
    read(response).await
}

/// Sends `body` as JSON with `method` and reads the answer as `T`.
pub(crate) async fn send<B: Serialize, T: DeserializeOwned>(
    method: Method,
    url: &str,
    body: &B,
) -> Result<T, Trouble> {
    let request = RequestBuilder::new(url)
        .method(method)
        .json(body)
        .map_err(|error| Trouble::new(format!("The request cannot be written: {error}")))?;
    read(request.send().await.map_err(|_| Trouble::unreachable())?).await
}

/// Sends `method` without a body and does not look at a good answer.
pub(crate) async fn command(method: Method, url: &str) -> Result<(), Trouble> {
    let response = RequestBuilder::new(url)
        .method(method)
        .send()
        .await
        .map_err(|_| Trouble::unreachable())?;
    if response.ok() {
        return Ok(());
    }
    let status = response.status();
    Err(Trouble::of_body(
        status,
        &response.text().await.unwrap_or_default(),
    ))
}

async fn read<T: DeserializeOwned>(response: Response) -> Result<T, Trouble> {
    let status = response.status();
    let good = response.ok();
    let body = response
        .text()
        .await
        .map_err(|_| Trouble::new("The server's answer was cut off half-way. Try again."))?;
    if !good {
        return Err(Trouble::of_body(status, &body));
    }
    serde_json::from_str(&body).map_err(|error| {
        Trouble::new(format!(
            "The server's answer is not what this page expects ({error}). Reload the page."
        ))
    })
}
