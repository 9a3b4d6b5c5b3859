//! The panel beside the map: the whole vocabulary, one cluster, or one label.

use std::sync::Arc;

use gnnxml_page_logic::figures;
use gnnxml_page_logic::long_tail::{TailPoint, rank_frequency, share_below};
use gnnxml_shared::api::LabelDetail;
use leptos::prelude::*;

use super::vocabulary::Vocabulary;
use super::{Focus, LabelsState};
use crate::long_tail::LongTailPlot;
use crate::notice::TroubleNotice;
use crate::server::{self, Trouble};

/// Points of a long-tail curve.
const POINTS: usize = 80;
/// Labels of a cluster listed at once.
const MOST_LISTED: usize = 400;

#[component]
pub(super) fn Panel(vocabulary: Arc<Vocabulary>) -> impl IntoView {
    let state = expect_context::<LabelsState>();
    let content = move || {
        let vocabulary = vocabulary.clone();
        match state.focus.get() {
            Focus::All => overview(&vocabulary).into_any(),
            Focus::Cluster(id) => cluster(&vocabulary, id).into_any(),
            Focus::Label(id) => view! { <LabelPanel vocabulary id/> }.into_any(),
        }
    };
    view! { <aside class="panel sheet" aria-label="Details">{content}</aside> }
}

fn overview(vocabulary: &Vocabulary) -> impl IntoView + use<> {
    let statistics = &vocabulary.statistics;
    let rare = share_below(&vocabulary.map.count, 10);
    let facts = [
        ("Labels", figures::count(statistics.labels.into())),
        ("Clusters", figures::count(statistics.clusters.into())),
        ("Documents", figures::count(statistics.documents.into())),
        (
            "Largest cluster",
            format!("{} labels", figures::count(statistics.largest.into())),
        ),
        ("Labels in fewer than 10 documents", figures::percent(rare)),
        (
            "Labels in more than 100",
            figures::percent(statistics.labels_over_100),
        ),
        (
            "Clusters in more than 100",
            figures::percent(statistics.clusters_over_100),
        ),
    ];
    let rows = facts
        .into_iter()
        .map(|(name, value)| view! { <div><dt>{name}</dt><dd>{value}</dd></div> })
        .collect_view();
    view! {
        <h2>"The whole vocabulary"</h2>
        <dl class="facts">{rows}</dl>
        <h3>"Long tail"</h3>
        <LongTailPlot points=rank_frequency(&vocabulary.map.count, POINTS)/>
        <p class="small soft">"Documents a label, by rank, on logarithmic axes."</p>
    }
}

fn missing(what: &str) -> AnyView {
    view! {
        <h2>{format!("There is no such {what}")}</h2>
        <p class="soft">"The model that tags now does not have it. " <a href="/labels">"Show all labels"</a></p>
    }
    .into_any()
}

fn cluster(vocabulary: &Vocabulary, id: u32) -> AnyView {
    let Some(cluster) = vocabulary.cluster(id) else {
        return missing("cluster");
    };
    let members = vocabulary.members(id);
    let largest = members.first().map_or(1, |&label| vocabulary.count(label)).max(1) as f32;
    let rows = members
        .iter()
        .take(MOST_LISTED)
        .map(|&label| {
            let count = vocabulary.count(label);
            let width = format!("{:.1}%", (1.0 + count as f32).ln() / (1.0 + largest).ln() * 100.0);
            view! {
                <li>
                    <a href=Focus::Label(label).address()>{vocabulary.name(label).to_owned()}</a>
                    <span class="number small">{figures::count(count.into())}</span>
                    <span class="bar" aria-hidden="true"><span class="bar-fill" style:width=width></span></span>
                </li>
            }
        })
        .collect_view();
    let more = members.len().saturating_sub(MOST_LISTED);
    let counts: Vec<u32> = members.iter().map(|&label| vocabulary.count(label)).collect();
    view! {
        <p class="overline"><a href="/labels">"All labels"</a></p>
        <h2>{cluster.name.clone()}</h2>
        <p class="soft">{format!(
            "{} labels, {} documents",
            figures::count(cluster.labels.into()),
            figures::count(cluster.documents.into())
        )}</p>
        <p class="small">{cluster.terms.join(" · ")}</p>
        {(counts.len() > 4).then(|| view! { <LongTailPlot points=rank_frequency(&counts, POINTS)/> })}
        <h3>"Its labels, most frequent first"</h3>
        <ol class="members">{rows}</ol>
        {(more > 0).then(|| view! { <p class="small soft">{format!("and {} rarer ones; search finds them", figures::count(more as u64))}</p> })}
    }
    .into_any()
}

#[component]
fn LabelPanel(vocabulary: Arc<Vocabulary>, id: u32) -> impl IntoView {
    let state = expect_context::<LabelsState>();
    let detail = RwSignal::new(None::<Result<LabelDetail, Trouble>>);
    leptos::task::spawn_local(async move {
        let answer = server::get::<LabelDetail>(&format!("/api/v1/labels/{id}")).await;
        if let Ok(label) = &answer {
            state
                .neighbours
                .try_set(label.neighbours.iter().map(|other| other.id).collect());
        }
        detail.try_set(Some(answer));
    });
    on_cleanup(move || {
        state.neighbours.try_set(Vec::new());
    });
    if vocabulary.map.x.get(id as usize).is_none() {
        return missing("label");
    }
    let count = vocabulary.count(id);
    let rank = 1 + vocabulary
        .map
        .count
        .iter()
        .filter(|&&other| other > count)
        .count() as u32;
    let cluster = vocabulary.cluster_of(id).map(|cluster| {
        view! { <a href=Focus::Cluster(cluster.id).address()>{cluster.name.clone()}</a> }
    });
    let more = move || match detail.get() {
        None => view! { <p class="soft small" role="status">"Fetching the details…"</p> }.into_any(),
        Some(Err(trouble)) => view! { <TroubleNotice trouble/> }.into_any(),
        Some(Ok(detail)) => details(&detail).into_any(),
    };
    view! {
        <p class="overline"><a href="/labels">"All labels"</a> " / " {cluster}</p>
        <h2>{vocabulary.name(id).to_owned()}</h2>
        <p class="soft">{format!("{} training documents", figures::count(count.into()))}</p>
        <LongTailPlot points=rank_frequency(&vocabulary.map.count, POINTS) marked=Some(TailPoint { rank, count })/>
        {more}
    }
    .into_any()
}

fn details(detail: &LabelDetail) -> impl IntoView + use<> {
    let neighbours = detail
        .neighbours
        .iter()
        .map(|other| {
            let width = format!("{:.1}%", other.probability * 100.0);
            view! {
                <li>
                    <a href=Focus::Label(other.id).address()>{other.name.clone()}</a>
                    <span class="number small">{figures::percent(other.probability)}</span>
                    <span class="bar" aria-hidden="true"><span class="bar-fill" style:width=width></span></span>
                </li>
            }
        })
        .collect_view();
    let terms = detail
        .terms
        .iter()
        .map(|term| view! { <li>{term.term.clone()} " " <span class="faint small">{figures::signed(term.weight)}</span></li> })
        .collect_view();
    let examples = detail
        .examples
        .iter()
        .map(|example| view! { <li><span class="mono small faint">{example.id.clone()}</span><p>{example.excerpt.clone()}</p></li> })
        .collect_view();
    view! {
        {(!detail.terms.is_empty()).then(|| view! { <h3>"Words that carry it"</h3><ul class="label-run">{terms}</ul> })}
        {(!detail.neighbours.is_empty()).then(|| view! { <h3>"Comes along with"</h3><ol class="members">{neighbours}</ol> })}
        {(!detail.examples.is_empty()).then(|| view! { <h3>"Documents"</h3><ul class="examples">{examples}</ul> })}
    }
}
