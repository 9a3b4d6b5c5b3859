//! The KeyGraph beside the text: drag, zoom, click a vertex and its sentences light up.

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

/// A vertex as it is drawn.
#[derive(Clone, Debug, PartialEq)]
struct Drawn {
    id: usize,
    text: String,
    kind: VertexKind,
    radius: f32,
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
        let vertices = order
            .iter()
            .map(|&index| {
                let vertex = &graph.vertices()[index];
                Drawn {
                    id: vertex.id,
                    text: vertex.text.clone(),
                    kind: vertex.kind,
                    radius: 4.0 + 8.0 * (vertex.rank / best).max(0.0).sqrt(),
                }
            })
            .collect::<Vec<_>>();
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

    fn layout(&self) -> Layout {
        let bodies = self
            .vertices
            .iter()
            .map(|vertex| Body {
                // The name below it wants room as well.
                radius: vertex.radius + 8.0 + (vertex.text.chars().count() as f32 * 0.9).min(14.0),
            })
            .collect();
        Layout::new(bodies, self.springs.clone())
    }
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
    let picture = Memo::new(move |_| state.with_graph(Picture::of).unwrap_or_default());
    let layout = StoredValue::new(Layout::new(Vec::new(), Vec::new()));
    let positions = RwSignal::new(Vec::<[f32; 2]>::new());
    let frame = RwSignal::new([-100.0f32, -75.0, 200.0, 150.0]);
    let running = StoredValue::new_local(None::<AnimationFrame>);

    // Whenever the graph changes: settle most of the way at once, so nothing flies about, then glide.
    Effect::new(move |_| {
        let mut fresh = picture.with(Picture::layout);
        if reduced_motion() {
            fresh.settle();
        } else {
            for _ in 0..160 {
                fresh.step();
            }
        }
        frame.set(fresh.bounds(48.0));
        positions.set(fresh.positions().to_vec());
        layout.set_value(fresh);
        glide(layout, positions, running);
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
    let edges = move || {
        picture.with(|picture| {
            picture
                .springs
                .iter()
                .map(|spring| edge(*spring, positions, picture, state))
                .collect_view()
        })
    };
    let vertices = move || {
        picture.with(|picture| {
            picture
                .vertices
                .iter()
                .cloned()
                .enumerate()
                .map(|(index, drawn)| vertex(index, drawn, positions, gesture, state))
                .collect_view()
        })
    };
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
                    <g>{edges}</g>
                    <g>{vertices}</g>
                </svg>
                <div class="graph-tools" class:unseen=move || picture.with(|picture| picture.vertices.is_empty())>
                    <button class="small" aria-label="Zoom in" on:click=move |_| zoom(1.0 / 1.25)>"+"</button>
                    <button class="small" aria-label="Zoom out" on:click=move |_| zoom(1.25)>"−"</button>
                    <button class="small" aria-label="Show all"
                        on:click=move |_| frame.set(layout.with_value(|layout| layout.bounds(48.0)))>"⤢"</button>
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

fn place(positions: RwSignal<Vec<[f32; 2]>>, index: usize) -> [f32; 2] {
    positions.with(|places| places.get(index).copied().unwrap_or_default())
}

fn edge(
    spring: Spring,
    positions: RwSignal<Vec<[f32; 2]>>,
    picture: &Picture,
    state: TagState,
) -> impl IntoView + use<> {
    let ends = [
        picture.vertices[spring.source].id,
        picture.vertices[spring.target].id,
    ];
    let lit = move || matches!(state.lit(), Some(Lit::Vertex(id)) if ends.contains(&id));
    let width = (0.6 + 0.9 * spring.weight.sqrt()).min(6.0);
    view! {
        <line class="edge" class:lit=lit stroke-width=width
            x1=move || place(positions, spring.source)[0] y1=move || place(positions, spring.source)[1]
            x2=move || place(positions, spring.target)[0] y2=move || place(positions, spring.target)[1]/>
    }
}

fn vertex(
    index: usize,
    drawn: Drawn,
    positions: RwSignal<Vec<[f32; 2]>>,
    gesture: RwSignal<Gesture>,
    state: TagState,
) -> impl IntoView {
    let lit = Lit::Vertex(drawn.id);
    let id = drawn.id;
    // A lit tag lights the vertices that carry it.
    let weight = Memo::new(move |_| match state.lit() {
        Some(Lit::Tag(label)) => state
            .evidence_of(label)
            .and_then(|evidence| {
                let largest = evidence
                    .vertices
                    .iter()
                    .map(|other| other.weight)
                    .fold(0.0f32, f32::max)
                    .max(1e-6);
                let own = evidence.vertices.iter().find(|other| other.vertex == id)?;
                Some(own.weight / largest)
            })
            .unwrap_or(0.0),
        Some(Lit::Vertex(other)) if other == id => 1.0,
        _ => 0.0,
    });
    let radius = drawn.radius;
    let shape = match drawn.kind {
        VertexKind::Keyword => view! { <circle class="v-keyword" r=radius/> }.into_any(),
        VertexKind::Entity => view! {
            <rect class="v-entity" x={-radius * 0.9} y={-radius * 0.9} width={radius * 1.8} height={radius * 1.8}/>
        }
        .into_any(),
        VertexKind::Empty => view! { <circle class="v-empty" r={radius.max(6.0)}/> }.into_any(),
    };
    let name = if drawn.kind == VertexKind::Empty {
        "(no keyword)".to_owned()
    } else {
        drawn.text
    };
    let label = format!("{name}: show its sentences");
    let transform = move || {
        let [x, y] = place(positions, index);
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
    let release = move |_: PointerEvent| {
        if matches!(gesture.get_untracked(), Gesture::Drag { moved: false, .. }) {
            state.toggle_pin(lit);
        }
    };
    let key = move |event: KeyboardEvent| {
        if matches!(event.key().as_str(), "Enter" | " ") {
            event.prevent_default();
            state.toggle_pin(lit);
        }
    };
    view! {
        <g class="vertex" transform=transform tabindex="0" role="button" aria-label=label
            aria-pressed=move || (state.pinned.get() == Some(lit)).to_string()
            class:lit=move || { weight.get() > 0.05 } class:strong=move || { weight.get() > 0.5 }
            on:pointerdown=press on:pointerup=release on:keydown=key
            on:pointerenter=move |_| state.pointed.set(Some(lit)) on:pointerleave=move |_| state.pointed.set(None)
            on:focus=move |_| state.pointed.set(Some(lit)) on:blur=move |_| state.pointed.set(None)
        >
            {shape}
            <text y={radius + 10.0}>{name}</text>
        </g>
    }
}
