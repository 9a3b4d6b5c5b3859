//! Following a run's events: replayed from the start, then live, reconnecting when the line is cut.

use gloo::timers::callback::Timeout;
use gnnxml_page_logic::run_story::RunStory;
use gnnxml_shared::api::{Run, StoredEvent};
use leptos::prelude::*;
use wasm_bindgen::JsCast as _;
use wasm_bindgen::closure::Closure;
use web_sys::{Event, EventSource, MessageEvent};

/// Milliseconds before a stream that the browser gave up on is opened again.
const PATIENCE: u32 = 2000;

/// How the stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Connecting,
    Live,
    /// The server went away; the stream goes on where it was cut.
    Cut,
    /// The run is over and everything was heard.
    Over,
}

/// What is known of a run.
#[derive(Clone, Copy)]
pub(super) struct Following {
    pub(super) story: RwSignal<RunStory>,
    pub(super) line: RwSignal<Line>,
    /// The run as the stream's end told it.
    pub(super) ended: RwSignal<Option<Run>>,
    stream: StoredValue<Option<Stream>, LocalStorage>,
    id: u64,
}

struct Stream {
    source: EventSource,
    _closures: [Closure<dyn FnMut(MessageEvent)>; 2],
    _states: [Closure<dyn FnMut(Event)>; 2],
    retry: Option<Timeout>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.source.close();
    }
}

impl Following {
    /// Starts listening; ends with the component that asked.
    pub(super) fn start(id: u64) -> Self {
        let following = Self {
            story: RwSignal::new(RunStory::default()),
            line: RwSignal::new(Line::Connecting),
            ended: RwSignal::new(None),
            stream: StoredValue::new_local(None),
            id,
        };
        following.open();
        on_cleanup(move || {
            following.stream.try_set_value(None);
        });
        following
    }

    /// Listens again, after a resume for example.
    pub(super) fn open(self) {
        let after = self.story.with_untracked(RunStory::last_event);
        let address = format!("/api/v1/runs/{}/events?after={after}", self.id);
        let Ok(source) = EventSource::new(&address) else {
            self.line.set(Line::Cut);
            return;
        };
        self.line.set(Line::Connecting);
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            let data = event.data().as_string().unwrap_or_default();
            // An event of a newer server that this page does not know yet is passed over.
            if let Ok(stored) = serde_json::from_str::<StoredEvent>(&data) {
                self.story
                    .try_update(|story| story.take(stored.id, &stored.event));
            }
        });
        let on_end = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| {
            let data = event.data().as_string().unwrap_or_default();
            self.ended.try_set(serde_json::from_str(&data).ok());
            self.line.try_set(Line::Over);
            self.stream.try_update_value(|stream| {
                if let Some(stream) = stream {
                    stream.source.close();
                }
            });
        });
        let on_open = Closure::<dyn FnMut(Event)>::new(move |_: Event| {
            self.line.try_set(Line::Live);
        });
        let on_error = Closure::<dyn FnMut(Event)>::new(move |_: Event| {
            if self
                .line
                .try_get_untracked()
                .is_none_or(|line| line == Line::Over)
            {
                return;
            }
            self.line.try_set(Line::Cut);
            // The browser tries again by itself unless it was refused; then we do.
            self.stream.try_update_value(|stream| {
                if let Some(stream) = stream
                    && stream.source.ready_state() == EventSource::CLOSED
                {
                    stream.retry = Some(Timeout::new(PATIENCE, move || self.open()));
                }
            });
        });
        source.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        source.set_onopen(Some(on_open.as_ref().unchecked_ref()));
        source.set_onerror(Some(on_error.as_ref().unchecked_ref()));
        let listened = source.add_event_listener_with_callback("end", on_end.as_ref().unchecked_ref());
        if listened.is_err() {
            self.line.set(Line::Cut);
        }
        let stream = Stream {
            source,
            _closures: [on_message, on_end],
            _states: [on_open, on_error],
            retry: None,
        };
        // The closures of an old stream may be the ones that called us: they are dropped after this turn.
        if let Some(old) = self
            .stream
            .try_update_value(|current| current.replace(stream))
            .flatten()
        {
            Timeout::new(0, move || drop(old)).forget();
        }
    }
}
