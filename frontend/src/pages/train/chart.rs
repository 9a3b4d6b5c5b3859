//! A small line chart with a read-out under the pointer, or under the arrow keys.

use gnnxml_page_logic::chart::{Axis, path};
use gnnxml_page_logic::figures;
use leptos::prelude::*;
use leptos::svg::Svg;
use web_sys::{KeyboardEvent, PointerEvent};

const WIDTH: f64 = 380.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 372.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 172.0;

/// One line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Series {
    pub(super) name: String,
    /// Position in the chart's palette.
    pub(super) colour: usize,
    pub(super) points: Vec<(f64, f64)>,
}

impl Series {
    fn at(&self, x: f64) -> Option<f64> {
        self.points
            .iter()
            .find(|point| (point.0 - x).abs() < 1e-9)
            .map(|point| point.1)
    }
}

/// Lines over epochs. `range` fixes the vertical axis; without it the values decide.
#[component]
pub(super) fn LineChart(
    title: &'static str,
    #[prop(into)] series: Signal<Vec<Series>>,
    #[prop(optional)] range: Option<(f64, f64)>,
) -> impl IntoView {
    let cursor = RwSignal::new(None::<f64>);
    let svg = NodeRef::<Svg>::new();
    let steps = Memo::new(move |_| {
        let mut steps: Vec<f64> = series.with(|all| {
            all.iter()
                .flat_map(|one| one.points.iter().map(|point| point.0))
                .collect()
        });
        steps.sort_by(f64::total_cmp);
        steps.dedup();
        steps
    });
    let across = Memo::new(move |_| {
        steps.with(|steps| {
            let first = steps.first().copied().unwrap_or(1.0);
            let last = steps.last().copied().unwrap_or(1.0).max(first + 1.0);
            Axis::exactly(first, last, LEFT, RIGHT)
        })
    });
    let up = Memo::new(move |_| match range {
        Some((low, high)) => Axis::exactly(low, high, BOTTOM, TOP),
        None => series.with(|all| {
            Axis::linear(
                all.iter().flat_map(|one| one.points.iter().map(|point| point.1)),
                BOTTOM,
                TOP,
            )
        }),
    });
    let nearest = move |x: f64| {
        steps.with_untracked(|steps| {
            steps
                .iter()
                .copied()
                .min_by(|one, other| (one - x).abs().total_cmp(&(other - x).abs()))
        })
    };
    let on_move = move |event: PointerEvent| {
        let Some(element) = svg.get_untracked() else {
            return;
        };
        let area = element.get_bounding_client_rect();
        let x = (f64::from(event.client_x()) - area.left()) / area.width().max(1.0) * WIDTH;
        cursor.set(nearest(across.get_untracked().value(x)));
    };
    let on_key = move |event: KeyboardEvent| {
        let by = match event.key().as_str() {
            "ArrowLeft" => -1,
            "ArrowRight" => 1,
            "Escape" => {
                cursor.set(None);
                return;
            }
            _ => return,
        };
        event.prevent_default();
        let next = steps.with_untracked(|steps| {
            let last = steps.len().checked_sub(1)?;
            let here = cursor
                .get_untracked()
                .and_then(|x| steps.iter().position(|step| *step >= x))
                .unwrap_or(last);
            steps.get(here.saturating_add_signed(by).min(last)).copied()
        });
        cursor.set(next);
    };
    let grid = move || {
        let up = up.get();
        up.ticks()
            .into_iter()
            .map(|tick| {
                let y = up.position(tick);
                view! {
                    <line class="grid" x1=LEFT x2=RIGHT y1=y y2=y/>
                    <text class="tick end" x={LEFT - 6.0} y={y + 4.0}>{figures::tick(tick)}</text>
                }
            })
            .collect_view()
    };
    let ends = move || {
        let across = across.get();
        steps.with(|steps| {
            // Each name stays inside the frame: the first begins at its tick, the last ends there.
            let ticks = [("tick", steps.first().copied()), ("tick end", steps.last().copied().filter(|_| steps.len() > 1))];
            ticks
                .into_iter()
                .filter_map(|(class, tick)| Some((class, tick?)))
                .map(|(class, tick)| {
                    view! { <text class=class x=across.position(tick) y={BOTTOM + 16.0}>{format!("epoch {}", figures::tick(tick))}</text> }
                })
                .collect_view()
        })
    };
    let lines = move || {
        let (across, up) = (across.get(), up.get());
        series.with(|all| {
            all.iter()
                .map(|one| {
                    let place = |(x, y): &(f64, f64)| (across.position(*x), up.position(*y));
                    let class = format!("line line-{}", one.colour);
                    let line = path(one.points.iter().map(place));
                    // One point makes no line: it is shown as a dot.
                    let dot = (one.points.len() == 1).then(|| {
                        let (x, y) = place(&one.points[0]);
                        view! { <circle class=format!("dot line-{}", one.colour) cx=x cy=y r="3"/> }
                    });
                    view! { <path class=class d=line/> {dot} }
                })
                .collect_view()
        })
    };
    let pointer = move || {
        cursor.get().map(|x| {
            let (across, up) = (across.get(), up.get());
            let at = across.position(x);
            let dots = series.with(|all| {
                all.iter()
                    .filter_map(|one| {
                        let y = one.at(x).filter(|value| value.is_finite())?;
                        Some(view! { <circle class=format!("dot line-{}", one.colour) cx=at cy=up.position(y) r="3.5"/> })
                    })
                    .collect_view()
            });
            view! { <line class="cursor" x1=at x2=at y1=TOP y2=BOTTOM/> {dots} }
        })
    };
    let legend = move || {
        let x = cursor.get();
        series.with(|all| {
            all.iter()
                .map(|one| {
                    let shown = match x {
                        Some(x) => one.at(x),
                        None => one.points.last().map(|point| point.1),
                    };
                    let value = shown.map_or_else(|| "–".to_owned(), figures::measure);
                    view! {
                        <li><span class=format!("swatch line-{}", one.colour)></span>{one.name.clone()} " " <strong>{value}</strong></li>
                    }
                })
                .collect_view()
        })
    };
    let when = move || {
        cursor.get().map_or_else(
            || "latest".to_owned(),
            |x| format!("epoch {}", figures::measure(x)),
        )
    };
    let view_box = format!("0 0 {WIDTH} {HEIGHT}");
    let label = format!("{title} over epochs. Left and right arrow keys read single epochs.");
    view! {
        <figure class="chart">
            <figcaption class="row spread"><span>{title}</span><span class="small soft">{when}</span></figcaption>
            <svg node_ref=svg viewBox=view_box tabindex="0" role="img" aria-label=label
                on:pointermove=on_move on:pointerleave=move |_| cursor.set(None) on:keydown=on_key>
                {grid}
                {ends}
                {lines}
                {pointer}
            </svg>
            <ul class="legend small" aria-live="polite">{legend}</ul>
        </figure>
    }
}
