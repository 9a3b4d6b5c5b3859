//! Where a bundle's files come from: an address, or a function of the caller's.

use js_sys::{Function, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, future_to_promise};

#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A folder's address, with its slash.
    Address(String),
    /// From a file name to a promise of bytes (`ArrayBuffer` or `Uint8Array`).
    Function(Function),
}

impl Source {
    pub(crate) fn new(source: JsValue) -> Result<Self, JsError> {
        if let Some(mut address) = source.as_string() {
            if !address.ends_with('/') {
                address.push('/');
            }
            return Ok(Self::Address(address));
        }
        source.dyn_into().map(Self::Function).map_err(|_| {
            JsError::new("expected the address of a bundle's folder, or a function that fetches a file")
        })
    }

    pub(crate) async fn fetch(&self, file: &str) -> Result<Vec<u8>, JsError> {
        let failed = |fault: JsValue| {
            let reason = fault.dyn_ref::<js_sys::Error>().map_or_else(
                || fault.as_string().unwrap_or_else(|| "no reason given".into()),
                |error| String::from(error.message()),
            );
            JsError::new(&format!("{file} could not be fetched: {reason}"))
        };
        let bytes = match self {
            Self::Function(function) => {
                let promised = function.call1(&JsValue::NULL, &file.into()).map_err(failed)?;
                JsFuture::from(Promise::resolve(&promised))
                    .await
                    .map_err(failed)?
            }
            Self::Address(folder) => body(&format!("{folder}{file}")).await.map_err(failed)?,
        };
        Ok(Uint8Array::new(&bytes).to_vec())
    }

    /// Starts fetching a file; others may be started before this one is waited for.
    pub(crate) fn begin(&self, file: &str) -> Begun {
        let (source, file) = (self.clone(), file.to_owned());
        let promised = future_to_promise(async move {
            let bytes = source.fetch(&file).await?;
            Ok(Uint8Array::from(&bytes[..]).into())
        });
        Begun(JsFuture::from(promised))
    }
}

/// A file on its way.
#[derive(Debug)]
pub(crate) struct Begun(JsFuture);

impl Begun {
    /// Its bytes; nothing when it did not come.
    pub(crate) async fn bytes(self) -> Option<Vec<u8>> {
        Some(Uint8Array::new(&self.0.await.ok()?).to_vec())
    }
}

/// The body of an answer, by the `fetch` of whatever global scope this is.
async fn body(address: &str) -> Result<JsValue, JsValue> {
    let global = js_sys::global();
    let fetch: Function = Reflect::get(&global, &"fetch".into())?.dyn_into()?;
    let answer = JsFuture::from(Promise::resolve(&fetch.call1(&global, &address.into())?)).await?;
    if Reflect::get(&answer, &"ok".into())?.as_bool() != Some(true) {
        let status = Reflect::get(&answer, &"status".into())?
            .as_f64()
            .unwrap_or_default();
        return Err(js_sys::Error::new(&format!("the server answered {status}")).into());
    }
    let read: Function = Reflect::get(&answer, &"arrayBuffer".into())?.dyn_into()?;
    JsFuture::from(Promise::resolve(&read.call0(&answer)?)).await
}
