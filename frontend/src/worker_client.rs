//! The page's end of the tagger's thread: requests go out by message, answers come back as futures.
//!
//! `assets/worker.js` is the other end. What goes through here is the only way a text takes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use futures::channel::oneshot;
use gloo::storage::{LocalStorage as Kept, Storage as _};
use gnnxml_shared::api::TagResponse;
use gnnxml_shared::keygraph::KeyGraph;
use js_sys::{Array, Object, Reflect};
use leptos::prelude::document;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast as _, JsValue};
use web_sys::{Event, HtmlMetaElement, MessageEvent, Worker, WorkerOptions, WorkerType};

/// Where the page keeps which engine was quicker.
const ENGINE_CHOICE: &str = "gnnxml:engine";

/// A model is in the worker and ready.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loaded {
    /// What computes: WebGPU, WASM SIMD or WASM.
    pub(crate) engine: String,
    pub(crate) milliseconds: f64,
}

/// One answer of the tagger.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tagged {
    pub(crate) response: TagResponse,
    pub(crate) engine: String,
    pub(crate) milliseconds: f64,
}

/// Bytes of the model so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LoadProgress {
    pub(crate) done: f64,
    pub(crate) total: f64,
    /// The file that is being fetched.
    pub(crate) what: String,
}

struct Waiting {
    answer: oneshot::Sender<Result<JsValue, String>>,
    progress: Option<Box<dyn Fn(LoadProgress)>>,
}

type WaitingRequests = Rc<RefCell<BTreeMap<u32, Waiting>>>;

/// One worker. Dropping it ends the thread and fails what waits.
pub(crate) struct TaggerClient {
    worker: Worker,
    waiting: WaitingRequests,
    next: Cell<u32>,
    _on_message: Closure<dyn FnMut(MessageEvent)>,
    _on_error: Closure<dyn FnMut(Event)>,
}

impl TaggerClient {
    /// Starts the thread; its module is fetched in the background.
    pub(crate) fn start() -> Result<Self, String> {
        let address = document()
            .query_selector("meta[name='gnnxml:worker']")
            .ok()
            .flatten()
            .and_then(|meta| meta.dyn_into::<HtmlMetaElement>().ok())
            .map(|meta| meta.content())
            .ok_or("the page does not say where its tagger is; reload the page")?;
        let options = WorkerOptions::new();
        options.set_type(WorkerType::Module);
        let worker = Worker::new_with_options(&address, &options)
            .map_err(|error| format!("the browser refused to start the tagger: {error:?}"))?;
        let waiting = WaitingRequests::default();
        let on_message = Closure::new({
            let waiting = waiting.clone();
            move |event: MessageEvent| receive(&waiting, &event.data())
        });
        let on_error = Closure::new({
            let waiting = waiting.clone();
            move |_: Event| {
                for (_, request) in std::mem::take(&mut *waiting.borrow_mut()) {
                    let message = "the tagger's module could not be loaded; reload the page";
                    let _ = request.answer.send(Err(message.to_owned()));
                }
            }
        });
        worker.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        worker.set_onerror(Some(on_error.as_ref().unchecked_ref()));
        Ok(Self {
            worker,
            waiting,
            next: Cell::new(0),
            _on_message: on_message,
            _on_error: on_error,
        })
    }

    /// Fetches the bundle at `base` and makes it the model that tags.
    pub(crate) async fn load(
        &self,
        base: &str,
        progress: impl Fn(LoadProgress) + 'static,
    ) -> Result<Loaded, String> {
        // Which engine was quicker the last time; what cannot be read or kept is timed again.
        let remembered: Option<serde_json::Value> = Kept::get(ENGINE_CHOICE).ok();
        let options = serde_json::json!({"remembered": remembered}).to_string();
        let fields = [("base", base), ("options", options.as_str())];
        let answer = self.request("load", &fields, Some(Box::new(progress)))?;
        let value = answer.await.map_err(|_| "the tagger was stopped".to_owned())??;
        if let Ok(choice) = serde_json::from_str::<serde_json::Value>(&text_of(&value, "choice")) {
            let _ = Kept::set(ENGINE_CHOICE, choice);
        }
        Ok(Loaded {
            engine: text_of(&value, "engine"),
            milliseconds: number_of(&value, "milliseconds"),
        })
    }

    /// Tags one text; `options` is JSON.
    pub(crate) async fn tag(&self, text: &str, options: &str) -> Result<Tagged, String> {
        let answer = self.request("tag", &[("text", text), ("options", options)], None)?;
        let value = answer.await.map_err(|_| "the tagger was stopped".to_owned())??;
        let response = serde_json::from_str(&text_of(&value, "json"))
            .map_err(|error| format!("the tagger's answer is not what this page expects: {error}"))?;
        Ok(Tagged {
            response,
            engine: text_of(&value, "engine"),
            milliseconds: number_of(&value, "milliseconds"),
        })
    }

    /// The KeyGraph of a text, read in the browser's own language; needs no model.
    pub(crate) async fn sketch(&self, text: &str) -> Result<KeyGraph, String> {
        let answer = self.request("sketch", &[("text", text)], None)?;
        let value = answer.await.map_err(|_| "the tagger was stopped".to_owned())??;
        serde_json::from_str(&text_of(&value, "json"))
            .map_err(|error| format!("the tagger's answer is not what this page expects: {error}"))
    }

    fn request(
        &self,
        kind: &str,
        fields: &[(&str, &str)],
        progress: Option<Box<dyn Fn(LoadProgress)>>,
    ) -> Result<oneshot::Receiver<Result<JsValue, String>>, String> {
        let id = self.next.get();
        self.next.set(id.wrapping_add(1));
        let message = Object::new();
        let set = |name: &str, value: &JsValue| Reflect::set(&message, &name.into(), value);
        let filled = set("id", &id.into())
            .and_then(|_| set("kind", &kind.into()))
            .and_then(|_| {
                fields
                    .iter()
                    .try_fold(true, |_, (name, value)| set(name, &(*value).into()))
            });
        filled.map_err(|error| format!("a message to the tagger cannot be written: {error:?}"))?;
        let (answer, receiver) = oneshot::channel();
        self.waiting.borrow_mut().insert(id, Waiting { answer, progress });
        self.worker
            .post_message(&message)
            .map_err(|error| format!("a message to the tagger cannot be sent: {error:?}"))?;
        Ok(receiver)
    }
}

impl Drop for TaggerClient {
    fn drop(&mut self) {
        self.worker.terminate();
    }
}

fn receive(waiting: &WaitingRequests, data: &JsValue) {
    let id = number_of(data, "id") as u32;
    match text_of(data, "kind").as_str() {
        "progress" => {
            let list: Array = field(data, "progress").unchecked_into();
            let progress = LoadProgress {
                done: list.get(0).as_f64().unwrap_or(0.0),
                total: list.get(1).as_f64().unwrap_or(0.0),
                what: list.get(2).as_string().unwrap_or_default(),
            };
            if let Some(Waiting {
                progress: Some(report),
                ..
            }) = waiting.borrow().get(&id)
            {
                report(progress);
            }
        }
        kind => {
            // A request that nobody waits for any more is dropped in silence.
            if let Some(request) = waiting.borrow_mut().remove(&id) {
                let answer = if kind == "done" {
                    Ok(field(data, "value"))
                } else {
                    Err(text_of(data, "message"))
                };
                let _ = request.answer.send(answer);
            }
        }
    }
}

fn field(object: &JsValue, name: &str) -> JsValue {
    Reflect::get(object, &name.into()).unwrap_or(JsValue::UNDEFINED)
}

fn text_of(object: &JsValue, name: &str) -> String {
    field(object, name).as_string().unwrap_or_default()
}

fn number_of(object: &JsValue, name: &str) -> f64 {
    field(object, name).as_f64().unwrap_or(0.0)
}
