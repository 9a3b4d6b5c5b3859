//! The long-tail plot: count over rank, both logarithmic.

use gnnxml_page_logic::chart::{Axis, path};
use gnnxml_page_logic::figures;
use gnnxml_page_logic::long_tail::TailPoint;
use leptos::prelude::*;

const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 172.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = WIDTH - 14.0;
const BOTTOM: f64 = 140.0;

/// The plot of these points; `marked` is one to point out.
#[component]
pub(crate) fn LongTailPlot(
    points: Vec<TailPoint>,
    #[prop(optional_no_strip)] marked: Option<TailPoint>,
) -> impl IntoView {
    let largest = points.first().map_or(1, |point| point.count);
    let last = points.last().map_or(1, |point| point.rank);
    let across = Axis::log(last.into(), LEFT, RIGHT);
    let up = Axis::log(largest.into(), BOTTOM, 10.0);
    let line = path(
        points
            .iter()
            .map(|p| (across.position(p.rank.into()), up.position(p.count.into()))),
    );
    let ticks_up = up
        .ticks()
        .into_iter()
        .map(|tick| {
            let y = up.position(tick);
            view! {
                <line class="grid" x1=LEFT x2=RIGHT y1=y y2=y/>
                <text class="tick end" x={LEFT - 6.0} y={y + 4.0}>{figures::short(tick as u64)}</text>
            }
        })
        .collect_view();
    let ticks_across = across
        .ticks()
        .into_iter()
        .map(|tick| {
            view! { <text class={if across.position(tick) > RIGHT - 20.0 { "tick end" } else { "tick middle" }}
            x={across.position(tick).min(WIDTH)} y={BOTTOM + 16.0}>{figures::short(tick as u64)}</text> }
        })
        .collect_view();
    let mark = marked.filter(|point| point.count > 0).map(|point| {
        let (x, y) = (
            across.position(point.rank.into()),
            up.position(point.count.into()),
        );
        view! { <circle class="chart-mark" cx=x cy=y r="5"/> }
    });
    let summary = format!(
        "Documents a label over its rank: the most frequent of {} labels has {}, the rarest {}.",
        figures::count(last.into()),
        figures::count(largest.into()),
        figures::count(points.last().map_or(0, |point| point.count).into()),
    );
    let view_box = format!("0 0 {WIDTH} {HEIGHT}");
    view! {
        <figure class="chart">
            <svg viewBox=view_box role="img" aria-label=summary>
                {ticks_up}
                {ticks_across}
                <path class="line line-0" d=line/>
                {mark}
                <text class="tick middle" x={LEFT.midpoint(RIGHT)} y={HEIGHT - 3.0}>"labels, most frequent first"</text>
            </svg>
        </figure>
    }
}
