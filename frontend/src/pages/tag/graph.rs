//! The KeyGraph beside the text: drag, zoom, click a vertex and its sentences light up.
//!
//! Typing must stay smooth while it is drawn, so it takes a frame of its own after the tags, its hundreds of edges are a few
//! paths, and vertices that stay keep their elements and their places.

use std::fmt::Write as _;

use gloo::render::{AnimationFrame, request_animation_frame};
use gnnxml_page_logic::forces::{Body, Layout, Spring};
use gnnxml_shared::keygraph::{KeyGraph, VertexKind};
use leptos::prelude::*;
use leptos::svg::Svg;
use web_sys::{KeyboardEvent, PointerEvent, WheelEvent};

use super::state::{Lit, TagState};
use crate::theme::reduced_motion;

/// More vertices than this are a ball of wool; the best-ranked are drawn and the rest is counted.
const MOST_DRAWN: usize = 40;
/// Half the width of a letter of a name.
const HALF_LETTER: f32 = 3.4;
/// Free space around the graph.
const MARGIN: f32 = 14.0;

/// A vertex as it is drawn.
#[derive(Clone, Debug, PartialEq)]
struct Drawn {
    id: usize,
    name: Name,
    radius: f32,
}

/// What makes it the same vertex in the graph of another text: its words, its kind, and how many stood before it with the same.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    text: String,
    kind: VertexKind,
    twin: usize,
}

impl Name {
    fn shown(&self) -> &str {
        match self.kind {
            VertexKind::Empty => "(no keyword)",
            VertexKind::Keyword | VertexKind::Entity => &self.text,
        }
    }
}

/// The drawn part of a KeyGraph.
#[derive(Clone, Debug, Default, PartialEq)]
struct Picture {
    vertices: Vec<Drawn>,
    springs: Vec<Spring>,
    left_out: usize,
}

impl Picture {
    fn of(graph: &KeyGraph) -> Self {
        let mut order: Vec<usize> = (0..graph.vertices().len()).collect();
        // The empty vertex has rank 0 but tells what the graph could not reach: it is always drawn.
        order.sort_by(|&one, &other| {
            let (one, other) = (&graph.vertices()[one], &graph.vertices()[other]);
            (other.kind == VertexKind::Empty)
                .cmp(&(one.kind == VertexKind::Empty))
                .then(other.rank.total_cmp(&one.rank))
                .then(one.id.cmp(&other.id))
        });
        let left_out = order.len().saturating_sub(MOST_DRAWN);
        order.truncate(MOST_DRAWN);
        let best = order
            .iter()
            .map(|&index| graph.vertices()[index].rank)
            .fold(0.0f32, f32::max)
            .max(1e-6);
        let mut vertices: Vec<Drawn> = Vec::with_capacity(order.len());
        for &index in &order {
            let vertex = &graph.vertices()[index];
            let is_twin = |other: &&Drawn| other.name.kind == vertex.kind && other.name.text == vertex.text;
            vertices.push(Drawn {
                id: vertex.id,
                name: Name {
                    text: vertex.text.clone(),
                    kind: vertex.kind,
                    twin: vertices.iter().filter(is_twin).count(),
                },
                radius: 4.0 + 8.0 * (vertex.rank / best).max(0.0).sqrt(),
            });
        }
        let place = |id: usize| vertices.iter().position(|vertex: &Drawn| vertex.id == id);
        let springs = graph
            .edges()
            .iter()
            .filter_map(|edge| {
                Some(Spring {
                    source: place(edge.source)?,
                    target: place(edge.target)?,
                    weight: edge.weight as f32,
                })
            })
            .collect();
        Self {
            vertices,
            springs,
            left_out,
        }
    }

    /// The layout, starting from where vertices of the picture before came to stand.
    fn layout(&self, before: &Picture, places: &[[f32; 2]]) -> Layout {
        let known: Vec<Option<[f32; 2]>> = self
            .vertices
            .iter()
            .map(|vertex| places.get(before.place_of(&vertex.name)?).copied())
            .collect();
        let bodies = self
            .vertices
            .iter()
            .map(|vertex| Body {
                radius: vertex.radius,
                reach: vertex.name.shown().chars().count() as f32 * HALF_LETTER,
            })
            .collect();
        Layout::resume(bodies, self.springs.clone(), &known)
    }

    fn place_of(&self, name: &Name) -> Option<usize> {
        self.vertices.iter().position(|vertex| vertex.name == *name)
    }

    /// The lines of all edges that `wanted` picks, as the `d` of one path.
    fn lines(&self, places: &[[f32; 2]], wanted: impl Fn(&Spring) -> bool) -> String {
        let mut lines = String::new();
        for spring in self.springs.iter().filter(|spring| wanted(spring)) {
            if let (Some([x, y]), Some([to_x, to_y])) = (places.get(spring.source), places.get(spring.target))
            {
                // Writing to a string cannot fail.
                let _ = write!(lines, "M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}");
            }
        }
        lines
    }
}

/// Edges are drawn in this many widths.
const WIDTHS: usize = 5;

/// The width an edge is drawn in: it doubles its weight from one to the next.
fn width_class(spring: &Spring) -> usize {
    (spring.weight.max(1.0).log2() as usize).min(WIDTHS - 1)
}

fn stroke_width(class: usize) -> f32 {
    (0.6 + 0.9 * (1.4 * (1 << class) as f32).sqrt()).min(6.0)
}

/// What the pointer is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Gesture {
    None,
    Drag {
        vertex: usize,
        from: Option<[f32; 2]>,
        moved: bool,
    },
    Pan {
        last: [f32; 2],
    },
}

/// The right column.
#[component]
pub(super) fn GraphPanel() -> impl IntoView {
    let state = expect_context::<TagState>();
    let picture = RwSignal::new(Picture::default());
    let layout = StoredValue::new(Layout::new(Vec::new(), Vec::new()));
    let positions = RwSignal::new(Vec::<[f32; 2]>::new());
    let frame = RwSignal::new([-100.0f32, -75.0, 200.0, 150.0]);
    let running = StoredValue::new_local(None::<AnimationFrame>);
    // Whether the person chose what to look at; then the frame stays, until another graph comes.
    let looked = StoredValue::new(false);

    let show = move |next: Picture| {
        let mut fresh = picture
            .with_untracked(|before| layout.with_value(|layout| next.layout(before, layout.positions())));
        if fresh.is_fresh() {
            looked.set_value(false);
            // Most of the way at once, so that nothing flies about.
            for _ in 0..160 {
                fresh.step();
            }
        }
        if reduced_motion() {
            fresh.settle();
        }
        if !looked.get_value() {
            frame.set(fresh.bounds(MARGIN));
        }
        positions.set(fresh.positions().to_vec());
        layout.set_value(fresh);
        picture.set(next);
        glide(layout, positions, running);
    };
    // The tags come first: the graph of the same answer waits for the next frame.
    let waiting = StoredValue::new_local(None::<AnimationFrame>);
    Effect::new(move |_| {
        let next = state.with_graph(Picture::of).unwrap_or_default();
        if picture.with_untracked(|shown| *shown != next) {
            waiting.set_value(Some(request_animation_frame(move |_| show(next))));
        } else {
            waiting.set_value(None);
        }
    });

    let svg = NodeRef::<Svg>::new();
    let gesture = RwSignal::new(Gesture::None);
    let to_graph = move |event: &PointerEvent| -> Option<[f32; 2]> {
        let area = svg.get_untracked()?.get_bounding_client_rect();
        let [left, top, width, height] = frame.get_untracked();
        let scale = (width / area.width() as f32).max(height / area.height() as f32);
        let middle = [left + width * 0.5, top + height * 0.5];
        Some([
            middle[0] + (event.client_x() as f32 - (area.left() + area.width() * 0.5) as f32) * scale,
            middle[1] + (event.client_y() as f32 - (area.top() + area.height() * 0.5) as f32) * scale,
        ])
    };
    let on_move = move |event: PointerEvent| match gesture.get_untracked() {
        Gesture::None => {}
        Gesture::Drag { vertex, from, moved } => {
            if let Some(at) = to_graph(&event) {
                let from = from.unwrap_or(at);
                // A hand that trembles while it clicks does not drag.
                let moved = moved || (at[0] - from[0]).hypot(at[1] - from[1]) > 4.0;
                gesture.set(Gesture::Drag {
                    vertex,
                    from: Some(from),
                    moved,
                });
                if moved {
                    layout.update_value(|layout| layout.hold(vertex, at));
                    glide(layout, positions, running);
                }
            }
        }
        Gesture::Pan { last } => {
            if let Some(at) = to_graph(&event) {
                looked.set_value(true);
                frame.update(|frame| {
                    frame[0] -= at[0] - last[0];
                    frame[1] -= at[1] - last[1];
                });
            }
        }
    };
    let on_up = move |_: PointerEvent| {
        layout.update_value(Layout::release);
        gesture.set(Gesture::None);
    };
    let on_down = move |event: PointerEvent| {
        if let Some(last) = to_graph(&event) {
            gesture.set(Gesture::Pan { last });
        }
    };
    let zoom = move |factor: f32| {
        looked.set_value(true);
        frame.update(|[left, top, width, height]| {
            let (wide, tall) = (*width * factor, *height * factor);
            if (40.0..4000.0).contains(&wide) {
                *left += (*width - wide) * 0.5;
                *top += (*height - tall) * 0.5;
                *width = wide;
                *height = tall;
            }
        });
    };
    let on_wheel = move |event: WheelEvent| {
        event.prevent_default();
        zoom(if event.delta_y() > 0.0 { 1.12 } else { 1.0 / 1.12 });
    };
    let view_box =
        move || frame.with(|[left, top, width, height]| format!("{left:.1} {top:.1} {width:.1} {height:.1}"));
    let note = move || {
        picture.with(|picture| match (picture.vertices.len(), picture.left_out) {
            (0, _) => String::new(),
            (count, 0) => format!("{count} vertices, {} edges", picture.springs.len()),
            (count, more) => format!("{count} best-ranked vertices of {}", count + more),
        })
    };
    let edges = (0..WIDTHS).map(|class| {
        let lines = move || {
            picture.with(|picture| {
                positions.with(|places| picture.lines(places, |spring| width_class(spring) == class))
            })
        };
        view! { <path class="edge" stroke-width=stroke_width(class) d=lines/> }
    });
    let lit_edges = move || {
        let Some(Lit::Vertex(id)) = state.lit() else {
            return String::new();
        };
        picture.with(|picture| {
            let Some(lit) = picture.vertices.iter().position(|vertex| vertex.id == id) else {
                return String::new();
            };
            positions
                .with(|places| picture.lines(places, |spring| [spring.source, spring.target].contains(&lit)))
        })
    };
    let count = Memo::new(move |_| picture.with(|picture| picture.vertices.len()));
    view! {
        <section class="stack graph-column" aria-labelledby="graph-title">
            <div class="row spread">
                <h2 id="graph-title" title="Keywords and names of the text; those that share a sentence are joined">"KeyGraph"</h2>
                <span class="small soft" id="graph-note">{note}</span>
            </div>
            <div class="graph-frame">
                <svg class="graph" node_ref=svg viewBox=view_box preserveAspectRatio="xMidYMid meet"
                    role="group" aria-label="Keywords that share sentences are joined"
                    on:pointermove=on_move on:pointerup=on_up on:pointerleave=on_up on:pointerdown=on_down on:wheel=on_wheel
                >
                    <g>{edges.collect_view()} <path class="edge lit" stroke-width=stroke_width(1) d=lit_edges/></g>
                    <g>
                        {move || (0..count.get()).map(|index| vertex(index, picture, positions, gesture, state)).collect_view()}
                    </g>
                </svg>
                <div class="graph-tools" class:unseen=move || picture.with(|picture| picture.vertices.is_empty())>
                    <button class="small" aria-label="Zoom in" on:click=move |_| zoom(1.0 / 1.25)>"+"</button>
                    <button class="small" aria-label="Zoom out" on:click=move |_| zoom(1.25)>"−"</button>
                    <button class="small" aria-label="Show all"
                        on:click=move |_| { looked.set_value(false); frame.set(layout.with_value(|layout| layout.bounds(MARGIN))) }>"⤢"</button>
                </div>
                {move || picture.with(|picture| picture.vertices.is_empty()).then(|| view! {
                    <p class="graph-empty empty">"The keywords and names of the text appear here, joined where they share a sentence."</p>
                })}
            </div>
            <ul class="legend small soft">
                <li><svg viewBox="0 0 12 12" aria-hidden="true"><circle class="v-keyword" cx="6" cy="6" r="4.5"/></svg>"keyword"</li>
                <li><svg viewBox="0 0 12 12" aria-hidden="true"><rect class="v-entity" x="2" y="2" width="8" height="8"/></svg>"name, number or date"</li>
                <li><svg viewBox="0 0 12 12" aria-hidden="true"><circle class="v-empty" cx="6" cy="6" r="4.5"/></svg>"sentences without either"</li>
            </ul>
        </section>
    }
}

/// Steps the layout on every frame until it is cold.
fn glide(
    layout: StoredValue<Layout>,
    positions: RwSignal<Vec<[f32; 2]>>,
    running: StoredValue<Option<AnimationFrame>, LocalStorage>,
) {
    let moving = layout.try_with_value(Layout::is_moving).unwrap_or(false);
    if !moving {
        return;
    }
    let next = request_animation_frame(move |_| {
        let Some(places) = layout.try_update_value(|layout| {
            layout.step();
            layout.positions().to_vec()
        }) else {
            return;
        };
        positions.try_set(places);
        glide(layout, positions, running);
    });
    running.try_set_value(Some(next));
}

/// How strongly a vertex is lit: a lit tag lights those that carry it.
fn lit_weight(state: TagState, id: usize) -> f32 {
    match state.lit() {
        Some(Lit::Vertex(lit)) if lit == id => 1.0,
        Some(Lit::Tag(label)) => state.with_evidence_of(label, |evidence| {
            let weights = || {
                evidence
                    .vertices
                    .iter()
                    .map(|vertex| (vertex.vertex, vertex.weight))
            };
            let largest = weights().fold(1e-6, |most: f32, (_, weight)| most.max(weight));
            weights()
                .find(|(vertex, _)| *vertex == id)
                .map_or(0.0, |(_, weight)| weight / largest)
        }),
        _ => 0.0,
    }
}

/// The vertex at a place of the picture. Its elements stay and take on what the next text puts there.
fn vertex(
    index: usize,
    picture: RwSignal<Picture>,
    positions: RwSignal<Vec<[f32; 2]>>,
    gesture: RwSignal<Gesture>,
    state: TagState,
) -> impl IntoView {
    let radius =
        move || picture.with(|picture| picture.vertices.get(index).map_or(4.0, |drawn| drawn.radius));
    let name = move || {
        picture.with(|picture| {
            let drawn = picture.vertices.get(index);
            drawn.map_or_else(String::new, |drawn| drawn.name.shown().to_owned())
        })
    };
    let kind = move || picture.with(|picture| picture.vertices.get(index).map(|drawn| drawn.name.kind));
    let shape = move || match kind() {
        Some(VertexKind::Entity) => "v-entity",
        Some(VertexKind::Empty) => "v-empty",
        Some(VertexKind::Keyword) | None => "v-keyword",
    };
    // A round one is a square with round corners; a square is drawn a little smaller, to weigh as much.
    let half = move || {
        if kind() == Some(VertexKind::Entity) {
            radius() * 0.9
        } else {
            radius()
        }
    };
    let corner = move || {
        if kind() == Some(VertexKind::Entity) {
            0.0
        } else {
            half()
        }
    };
    let id = move || picture.with(|picture| picture.vertices.get(index).map(|drawn| drawn.id));
    let lit = move || untrack(id).map(Lit::Vertex);
    let weight = move || id().map_or(0.0, |id| lit_weight(state, id));
    let transform = move || {
        let [x, y] = positions.with(|places| places.get(index).copied().unwrap_or_default());
        format!("translate({x:.1} {y:.1})")
    };
    let press = move |event: PointerEvent| {
        event.stop_propagation();
        gesture.set(Gesture::Drag {
            vertex: index,
            from: None,
            moved: false,
        });
    };
    let pin = move || {
        if let Some(lit) = lit() {
            state.toggle_pin(lit);
        }
    };
    let release = move |_: PointerEvent| {
        if matches!(gesture.get_untracked(), Gesture::Drag { moved: false, .. }) {
            pin();
        }
    };
    let key = move |event: KeyboardEvent| {
        if matches!(event.key().as_str(), "Enter" | " ") {
            event.prevent_default();
            pin();
        }
    };
    let pinned = move || state.pinned.get().is_some() && state.pinned.get() == id().map(Lit::Vertex);
    view! {
        <g class="vertex" transform=transform tabindex="0" role="button"
            aria-label=move || format!("{}: show its sentences", name()) aria-pressed=move || pinned().to_string()
            class:lit=move || { weight() > 0.05 } class:strong=move || { weight() > 0.5 }
            on:pointerdown=press on:pointerup=release on:keydown=key
            on:pointerenter=move |_| state.pointed.set(lit()) on:pointerleave=move |_| state.pointed.set(None)
            on:focus=move |_| state.pointed.set(lit()) on:blur=move |_| state.pointed.set(None)
        >
            <rect class=shape x=move || -half() y=move || -half() width=move || 2.0 * half() height=move || 2.0 * half() rx=corner/>
            <text y=move || radius() + 10.0>{name}</text>
        </g>
    }
}
