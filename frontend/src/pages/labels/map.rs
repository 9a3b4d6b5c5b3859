//! The map as people handle it: drag, wheel, pinch, keys, click.

use std::sync::Arc;

use gloo::events::EventListener;
use gloo::render::{AnimationFrame, request_animation_frame};
use gloo::timers::future::TimeoutFuture;
use gnnxml_page_logic::figures;
use gnnxml_page_logic::map::{Owner, Scene, View};
use leptos::html::{Canvas, Div};
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use wasm_bindgen::JsCast as _;
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement, KeyboardEvent, PointerEvent, WheelEvent};

use super::canvas::{LetterWidths, Painting, paint};
use super::colour::Palette;
use super::gpu::{GpuDots, Look, Places};
use super::vocabulary::Vocabulary;
use super::{Focus, LabelsState};
use crate::theme::{Theme, reduced_motion};

/// How fast a flight to a new focus closes the distance, each frame.
const FLIGHT: f32 = 0.22;

/// The canvas with everything needed to paint it.
struct Stage {
    canvas: HtmlCanvasElement,
    context: CanvasRenderingContext2d,
    /// Draws the dots on the canvas below, where there is a GPU.
    dots: Option<GpuDots>,
    scene: Scene,
    view: View,
    target: Option<View>,
    palette: Palette,
    vocabulary: Arc<Vocabulary>,
    /// Fingers and buttons that are down, by pointer id.
    pointers: Vec<(i32, [f32; 2])>,
    travelled: f32,
    pending: Option<AnimationFrame>,
}

type StageValue = StoredValue<Option<Stage>, LocalStorage>;

/// What a frame cost the processor, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Cost {
    /// Choosing dots and placing names.
    prepared: f64,
    /// That, and telling the canvases what to draw.
    whole: f64,
}

/// What hovering found.
#[derive(Clone, Debug, PartialEq)]
struct Tip {
    label: u32,
    at: [f32; 2],
}

/// The map component.
#[component]
pub(super) fn MapView(vocabulary: Arc<Vocabulary>) -> impl IntoView {
    let state = expect_context::<LabelsState>();
    let frame = NodeRef::<Div>::new();
    let canvas = NodeRef::<Canvas>::new();
    let dots_canvas = NodeRef::<Canvas>::new();
    // What draws the dots: told to tests and to the curious.
    let painter = RwSignal::new("canvas");
    let stage: StageValue = StoredValue::new_local(None);
    let tip = RwSignal::new(None::<Tip>);
    let cost = RwSignal::new(Cost::default());
    let navigate = use_navigate();
    let total = figures::count(vocabulary.map.x.len() as u64);

    let redraw = move || schedule(stage, state, tip, cost, painter);
    let for_stage = vocabulary.clone();
    Effect::new(move |_| {
        let (Some(frame), Some(canvas), Some(dots)) = (frame.get(), canvas.get(), dots_canvas.get()) else {
            return;
        };
        let Some(fresh) = Stage::new(&frame, canvas, for_stage.clone()) else {
            return;
        };
        let places = Places::of(&fresh.scene);
        stage.set_value(Some(fresh));
        leptos::task::spawn_local(async move {
            // A browser whose GPU process is only starting has no adapter yet.
            for wait in [0, 500, 2_000] {
                TimeoutFuture::new(wait).await;
                match GpuDots::new(dots.clone(), places.clone(), redraw).await {
                    Ok(dots) => {
                        stage.try_update_value(|stage| stage.as_mut().map(|stage| stage.dots = Some(dots)));
                        redraw();
                        return;
                    }
                    // The 2-D canvas paints the dots; nobody misses anything but speed.
                    Err(reason) => leptos::logging::debug_log!("the map is painted without WebGPU: {reason}"),
                }
            }
        });
        fly_to_focus(stage, state.focus.get_untracked(), true);
        redraw();
    });
    Effect::new(move |_| {
        let focus = state.focus.get();
        state.neighbours.track();
        fly_to_focus(stage, focus, false);
        redraw();
    });
    let resized = EventListener::new(&window(), "resize", move |_| {
        if let Some(frame) = frame.get_untracked() {
            stage.try_update_value(|stage| stage.as_mut().map(|stage| stage.resize(&frame)));
            redraw();
        }
    });
    let theme = expect_context::<Theme>();
    Effect::new(move |_| {
        theme.track();
        redraw();
    });
    let listener = StoredValue::new_local(Some(resized));
    on_cleanup(move || {
        listener.try_set_value(None);
        stage.try_set_value(None);
    });

    let on_down = move |event: PointerEvent| {
        stage.update_value(|stage| {
            let Some(stage) = stage else { return };
            let _ = stage.canvas.set_pointer_capture(event.pointer_id());
            stage.pointers.push((event.pointer_id(), place(&event)));
            stage.travelled = 0.0;
            stage.target = None;
        });
    };
    let on_move = move |event: PointerEvent| {
        let at = place(&event);
        let mut hovering = true;
        stage.update_value(|stage| {
            let Some(stage) = stage else { return };
            if stage.drag(event.pointer_id(), at) {
                hovering = false;
            }
        });
        if hovering {
            let found = stage.with_value(|stage| stage.as_ref().and_then(|stage| stage.scene.label_at(at)));
            let next = found.map(|label| Tip { label, at });
            if next != tip.get_untracked() {
                tip.set(next);
                redraw();
            }
        } else {
            tip.set(None);
            redraw();
        }
    };
    let on_up = move |event: PointerEvent| {
        let mut clicked = None;
        stage.update_value(|stage| {
            let Some(stage) = stage else { return };
            stage.pointers.retain(|(id, _)| *id != event.pointer_id());
            if stage.travelled < 4.0 {
                let at = place(&event);
                clicked = stage
                    .scene
                    .name_at(at)
                    .or_else(|| stage.scene.label_at(at).map(Owner::Label));
            }
        });
        match clicked {
            Some(Owner::Cluster(id)) => navigate(&Focus::Cluster(id).address(), quietly()),
            Some(Owner::Label(id)) => navigate(&Focus::Label(id).address(), quietly()),
            None => {}
        }
    };
    let zoom = move |at: Option<[f32; 2]>, factor: f32| {
        stage.update_value(|stage| {
            let Some(stage) = stage else { return };
            let middle = [stage.view.size[0] * 0.5, stage.view.size[1] * 0.5];
            stage.target = None;
            stage.view.zoom_at(at.unwrap_or(middle), factor);
        });
        redraw();
    };
    let on_wheel = move |event: WheelEvent| {
        event.prevent_default();
        let factor = (-event.delta_y() as f32 * 0.0016).exp();
        zoom(Some([event.offset_x() as f32, event.offset_y() as f32]), factor);
    };
    let on_key = move |event: KeyboardEvent| {
        let step = 60.0;
        let by = match event.key().as_str() {
            "ArrowLeft" => [step, 0.0],
            "ArrowRight" => [-step, 0.0],
            "ArrowUp" => [0.0, step],
            "ArrowDown" => [0.0, -step],
            "+" | "=" => return zoom(None, 1.3),
            "-" => return zoom(None, 1.0 / 1.3),
            "0" => {
                show_all(stage);
                return redraw();
            }
            _ => return,
        };
        event.prevent_default();
        stage.update_value(|stage| {
            if let Some(stage) = stage {
                stage.target = None;
                stage.view.pan(by);
            }
        });
        redraw();
    };
    let tip_view = {
        let vocabulary = vocabulary.clone();
        move || {
            tip.get().map(|tip| {
                let name = vocabulary.name(tip.label).to_owned();
                let count = figures::count(vocabulary.count(tip.label).into());
                let left = format!("{:.0}px", tip.at[0]);
                let top = format!("{:.0}px", tip.at[1]);
                view! {
                    <div class="tip small" style:left=left style:top=top>
                        <strong>{name}</strong> <span class="soft">{count} " documents"</span>
                    </div>
                }
            })
        }
    };
    view! {
        <div class="map-frame" node_ref=frame>
            <canvas node_ref=dots_canvas class="map-dots" aria-hidden="true"></canvas>
            <canvas node_ref=canvas class="map" tabindex="0" role="img" data-painter=move || painter.get()
                aria-label="Map of the labels. Arrow keys move, plus and minus zoom, zero shows all. The list shows the same."
                data-frame-ms=move || format!("{:.3}", cost.get().prepared) data-paint-ms=move || format!("{:.3}", cost.get().whole)
                on:pointerdown=on_down on:pointermove=on_move on:pointerup=on_up.clone() on:pointercancel=on_up
                on:pointerleave=move |_| { tip.set(None); redraw() }
                on:wheel=on_wheel on:keydown=on_key
                on:dblclick=move |event| zoom(Some([event.offset_x() as f32, event.offset_y() as f32]), 2.0)
            ></canvas>
            <div class="graph-tools">
                <button class="small" aria-label="Zoom in" on:click=move |_| zoom(None, 1.5)>"+"</button>
                <button class="small" aria-label="Zoom out" on:click=move |_| zoom(None, 1.0 / 1.5)>"−"</button>
                <button class="small" aria-label="Show all" on:click=move |_| { show_all(stage); redraw() }>"⤢"</button>
            </div>
            {tip_view}
            <p class="map-note small soft">{total} " labels · frame prepared in " {move || format!("{:.1} ms", cost.get().prepared)}</p>
        </div>
    }
}

/// Choosing on the map must not scroll the page.
fn quietly() -> NavigateOptions {
    NavigateOptions {
        scroll: false,
        ..NavigateOptions::default()
    }
}

fn place(event: &PointerEvent) -> [f32; 2] {
    [event.offset_x() as f32, event.offset_y() as f32]
}

fn show_all(stage: StageValue) {
    stage.update_value(|stage| {
        if let Some(stage) = stage {
            stage.go(View::whole(stage.view.size));
        }
    });
}

/// Moves the view to what the address names; `at_once` without a flight.
fn fly_to_focus(stage: StageValue, focus: Focus, at_once: bool) {
    stage.try_update_value(|stage| {
        let Some(stage) = stage.as_mut() else { return };
        let whole = View::whole(stage.view.size);
        let (place, zoom) = match focus {
            Focus::All => return,
            Focus::Cluster(id) => (stage.scene.clusters().get(id as usize), 3.0),
            Focus::Label(id) => (stage.scene.labels().get(id as usize), 5.0),
        };
        let Some(place) = place else { return };
        let scale = stage.view.scale.max(whole.scale * zoom);
        let next = View {
            center: place.at,
            scale,
            size: stage.view.size,
        };
        if at_once {
            stage.view = next;
        } else {
            stage.go(next);
        }
    });
}

/// Paints on the next frame, once, however often it is asked.
fn schedule(
    stage: StageValue,
    state: LabelsState,
    tip: RwSignal<Option<Tip>>,
    cost: RwSignal<Cost>,
    painter: RwSignal<&'static str>,
) {
    stage.try_update_value(|value| {
        let Some(inner) = value.as_mut() else { return };
        if inner.pending.is_some() {
            return;
        }
        inner.pending = Some(request_animation_frame(move |_| {
            let mut flying = false;
            stage.try_update_value(|value| {
                if let Some(inner) = value.as_mut() {
                    inner.pending = None;
                    flying = inner.advance();
                    let spent = inner.draw(state, tip.try_get_untracked().flatten());
                    cost.try_set(spent);
                    painter.try_set(if inner.dots.is_some() { "webgpu" } else { "canvas" });
                }
            });
            if flying {
                schedule(stage, state, tip, cost, painter);
            }
        }));
    });
}

impl Stage {
    fn new(
        frame: &web_sys::HtmlDivElement,
        canvas: HtmlCanvasElement,
        vocabulary: Arc<Vocabulary>,
    ) -> Option<Self> {
        let context: CanvasRenderingContext2d = canvas.get_context("2d").ok()??.dyn_into().ok()?;
        let widths = LetterWidths::measure(&context).ok()?;
        let scene = vocabulary.scene(|name| widths.of(name));
        let mut stage = Self {
            canvas,
            context,
            dots: None,
            scene,
            view: View::whole([1.0, 1.0]),
            target: None,
            palette: Palette::current(),
            vocabulary,
            pointers: Vec::new(),
            travelled: 0.0,
            pending: None,
        };
        stage.resize(frame);
        stage.view = View::whole(stage.view.size);
        Some(stage)
    }

    fn resize(&mut self, frame: &web_sys::HtmlDivElement) {
        let size = [
            frame.client_width().max(1) as f32,
            frame.client_height().max(1) as f32,
        ];
        let ratio = window().device_pixel_ratio();
        self.canvas.set_width((f64::from(size[0]) * ratio) as u32);
        self.canvas.set_height((f64::from(size[1]) * ratio) as u32);
        self.view = self.view.resized(size);
    }

    fn go(&mut self, target: View) {
        if reduced_motion() {
            self.view = target;
        } else {
            self.target = Some(target);
        }
    }

    /// One step towards the target; true while there is still a way to go.
    fn advance(&mut self) -> bool {
        let Some(target) = self.target else { return false };
        let view = &mut self.view;
        view.scale *= (target.scale / view.scale).powf(FLIGHT);
        for axis in 0..2 {
            view.center[axis] += (target.center[axis] - view.center[axis]) * FLIGHT;
        }
        let near = (target.scale / view.scale - 1.0).abs() < 0.004
            && (0..2).all(|axis| (target.center[axis] - view.center[axis]).abs() * view.scale < 0.5);
        if near {
            *view = target;
            self.target = None;
        }
        !near
    }

    /// Follows a pointer that is down: one pans, two pinch. False when none is down.
    fn drag(&mut self, id: i32, at: [f32; 2]) -> bool {
        let Some(index) = self.pointers.iter().position(|(pointer, _)| *pointer == id) else {
            return false;
        };
        let last = self.pointers[index].1;
        self.pointers[index].1 = at;
        self.travelled += (at[0] - last[0]).abs() + (at[1] - last[1]).abs();
        if let [(_, one), (_, other)] = self.pointers[..] {
            let fixed = if index == 0 { other } else { one };
            let before = (last[0] - fixed[0]).hypot(last[1] - fixed[1]).max(1.0);
            let now = (at[0] - fixed[0]).hypot(at[1] - fixed[1]).max(1.0);
            self.view.zoom_at(fixed, now / before);
        } else {
            self.view.pan([at[0] - last[0], at[1] - last[1]]);
        }
        true
    }

    /// Paints and returns what that cost.
    fn draw(&mut self, state: LabelsState, tip: Option<Tip>) -> Cost {
        self.palette = Palette::current();
        let (cluster, label) = match state.focus.try_get_untracked() {
            Some(Focus::Cluster(id)) => (Some(id), None),
            Some(Focus::Label(id)) => (None, Some(id)),
            _ => (None, None),
        };
        let neighbours = state.neighbours.try_get_untracked().unwrap_or_default();
        let mut named: Vec<Owner> = label.map(Owner::Label).into_iter().collect();
        named.extend(cluster.map(Owner::Cluster));
        let now = || window().performance().map_or(0.0, |clock| clock.now());
        let started = now();
        self.scene.prepare(&self.view, &named);
        let prepared = now() - started;
        let mut painting = Painting {
            vocabulary: &self.vocabulary,
            palette: &self.palette,
            view: &self.view,
            cluster,
            label,
            neighbours: &neighbours,
            pointed: tip.map(|tip| tip.label),
            dots_elsewhere: false,
        };
        let ratio = window().device_pixel_ratio();
        if let Some(dots) = &mut self.dots {
            let look = Look {
                dark: painting.palette.dark,
                cluster: painting.own_cluster(),
                ratio: ratio as f32,
            };
            // When the device is lost the 2-D canvas takes over.
            painting.dots_elsewhere = dots.draw(&self.view, look);
            if !painting.dots_elsewhere {
                self.dots = None;
            }
        }
        if let Err(error) = paint(&self.context, ratio, self.scene.frame(), &painting) {
            leptos::logging::warn!("the map could not be painted: {error:?}");
        }
        Cost {
            prepared,
            whole: now() - started,
        }
    }
}
