//! Where a bundle's files come from: an address, or a function of the caller's.

use std::error::Error;

use gnnxml_shared::bundle::PartRef;
use js_sys::{Function, Object, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, future_to_promise};

/// How often a file is asked for before it is given up.
const TRIES: usize = 3;

/// No manifest is longer: one of ten thousand shards has some two million bytes.
const LONGEST_MANIFEST: u64 = 8 << 20;

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

    /// Starts fetching the manifest.
    pub(crate) fn manifest(&self) -> Begun {
        self.begin("manifest.json", LONGEST_MANIFEST)
    }

    /// Starts fetching a part; others may be started before this one is waited for.
    pub(crate) fn part(&self, part: &PartRef) -> Begun {
        self.begin(&part.file, part.bytes)
    }

    fn begin(&self, file: &str, most: u64) -> Begun {
        Begun {
            promised: self.ask(file, Caches::Asked),
            source: self.clone(),
            file: file.to_owned(),
            most,
        }
    }

    fn ask(&self, file: &str, caches: Caches) -> JsFuture {
        let promised = match self {
            Self::Function(function) => match function.call1(&JsValue::NULL, &file.into()) {
                Ok(promised) => Promise::resolve(&promised),
                Err(fault) => Promise::reject(&fault),
            },
            Self::Address(folder) => {
                let address = format!("{folder}{file}");
                future_to_promise(async move { body(&address, caches).await })
            }
        };
        JsFuture::from(promised)
    }
}

/// What caches on the way have to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caches {
    Asked,
    PassedBy,
}

/// A file on its way.
#[derive(Debug)]
pub(crate) struct Begun {
    promised: JsFuture,
    source: Source,
    file: String,
    /// Bytes it may have.
    most: u64,
}

impl Begun {
    /// What `take` makes of the file. One that does not come, or not as `take` wants it, is asked for again, past every
    /// cache: what lies there may be what is wrong.
    pub(crate) async fn taken<T, E: Error>(
        mut self,
        mut take: impl FnMut(Vec<u8>) -> Result<T, E>,
    ) -> Result<T, JsError> {
        for _ in 1..TRIES {
            if let Ok(bytes) = self.bytes().await
                && let Ok(taken) = take(bytes)
            {
                return Ok(taken);
            }
            self.promised = self.source.ask(&self.file, Caches::PassedBy);
        }
        take(self.bytes().await?).map_err(JsError::from)
    }

    /// Copied into the module only once the length is known: a module that runs out of memory is gone.
    async fn bytes(&mut self) -> Result<Vec<u8>, JsError> {
        let file = &self.file;
        let failed = |fault: JsValue| {
            let reason = fault.dyn_ref::<js_sys::Error>().map_or_else(
                || fault.as_string().unwrap_or_else(|| "no reason given".into()),
                |error| String::from(error.message()),
            );
            JsError::new(&format!("{file} could not be fetched: {reason}"))
        };
        let came = (&mut self.promised).await.map_err(failed)?;
        let length = Reflect::get(&came, &"byteLength".into()).ok();
        let Some(length) = length.and_then(|length| length.as_f64()) else {
            return Err(failed("expected an ArrayBuffer or a Uint8Array".into()));
        };
        if length > self.most as f64 {
            let most = self.most;
            return Err(JsError::new(&format!(
                "{file} has {length} bytes, expected {most} at most"
            )));
        }
        let bytes = came.dyn_into().unwrap_or_else(|buffer| Uint8Array::new(&buffer));
        Ok(bytes.to_vec())
    }
}

/// The body of an answer, by the `fetch` of whatever global scope this is.
async fn body(address: &str, caches: Caches) -> Result<JsValue, JsValue> {
    let global = js_sys::global();
    let options = Object::new();
    if caches == Caches::PassedBy {
        Reflect::set(&options, &"cache".into(), &"reload".into())?;
    }
    let fetch: Function = Reflect::get(&global, &"fetch".into())?.dyn_into()?;
    let promised = fetch.call2(&global, &address.into(), &options)?;
    let answer = JsFuture::from(Promise::resolve(&promised)).await?;
    if Reflect::get(&answer, &"ok".into())?.as_bool() != Some(true) {
        let status = Reflect::get(&answer, &"status".into())?
            .as_f64()
            .unwrap_or_default();
        return Err(js_sys::Error::new(&format!("the server answered {status}")).into());
    }
    let read: Function = Reflect::get(&answer, &"arrayBuffer".into())?.dyn_into()?;
    JsFuture::from(Promise::resolve(&read.call0(&answer)?)).await
}
