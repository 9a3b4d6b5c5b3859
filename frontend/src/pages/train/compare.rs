//! Runs side by side: their figures in a table, their curves on top of each other.

use std::collections::BTreeMap;

use gnnxml_page_logic::figures;
use gnnxml_page_logic::run_story::RunStory;
use gnnxml_shared::api::Run;
use leptos::prelude::*;

use super::TrainState;
use super::chart::{LineChart, Series};
use super::events::Following;
use super::run::{FIGURES, over_epochs};
use super::runs::figure_name;

/// Shown once two runs are ticked.
#[component]
pub(super) fn Compare() -> impl IntoView {
    let state = expect_context::<TrainState>();
    let runs = Memo::new(move |_| {
        let wanted = state.compared.get();
        state.runs.with(|list| {
            let known = list.as_ref().and_then(|list| list.as_ref().ok());
            known.map_or_else(Vec::new, |list| {
                wanted
                    .iter()
                    .filter_map(|id| list.runs.iter().find(|run| run.id == *id).cloned())
                    .collect::<Vec<Run>>()
            })
        })
    });
    let ids = Memo::new(move |_| runs.with(|runs| runs.iter().map(|run| run.id).collect::<Vec<u64>>()));
    move || (ids.with(Vec::len) >= 2).then(|| view! { <Comparison runs ids/> })
}

#[component]
fn Comparison(runs: Memo<Vec<Run>>, ids: Memo<Vec<u64>>) -> impl IntoView {
    // One stream a run: the events hold the curves.
    let followed = Memo::new(move |_| {
        ids.get()
            .into_iter()
            .map(|id| (id, Following::start(id).story))
            .collect::<BTreeMap<_, _>>()
    });
    let names = Memo::new(move |_| {
        runs.with(|runs| {
            let named: Vec<(u64, &str)> = runs.iter().map(|run| (run.id, run.name.as_str())).collect();
            figures::told_apart(&named)
        })
    });
    let curves = move |value: fn(&gnnxml_page_logic::run_story::EpochPoint) -> Option<f64>| {
        Signal::derive(move || {
            runs.with(|runs| {
                followed.with(|followed| {
                    (runs.iter().zip(names.get()))
                        .enumerate()
                        .filter_map(|(index, (run, name))| {
                            let story: &RwSignal<RunStory> = followed.get(&run.id)?;
                            story.with(|story| {
                                let learned = !story.epochs.is_empty();
                                learned.then(|| over_epochs(&story.epochs, name, index % 6, value))
                            })
                        })
                        .collect::<Vec<Series>>()
                })
            })
        })
    };
    // Runs without the graph network have no curves to lay on top of each other.
    let any_curve = move || {
        followed.with(|followed| {
            followed
                .values()
                .any(|story| story.with(|story| !story.epochs.is_empty()))
        })
    };
    let head = move || {
        runs.with(|runs| {
            (runs.iter().zip(names.get()))
                .enumerate()
                .map(|(index, (run, name))| {
                    view! {
                        <th scope="col" class="number">
                            <span class=format!("swatch line-{}", index % 6)></span>
                            <a href=format!("/train/run/{}", run.id)>{name}</a>
                        </th>
                    }
                })
                .collect_view()
        })
    };
    let rows = move || {
        runs.with(|runs| {
            FIGURES
                .iter()
                .filter(|name| runs.iter().any(|run| run.metrics.contains_key(**name)))
                .map(|name| {
                    let values: Vec<Option<f64>> =
                        runs.iter().map(|run| run.metrics.get(*name).copied()).collect();
                    let best = values.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
                    let cells = values
                        .into_iter()
                        .map(|value| {
                            let text = value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"));
                            view! { <td class="number" class:best=value == Some(best)>{text}</td> }
                        })
                        .collect_view();
                    view! { <tr><th scope="row">{figure_name(name)}</th>{cells}</tr> }
                })
                .collect_view()
        })
    };
    view! {
        <section class="sheet stack" aria-labelledby="compare-title">
            <h2 id="compare-title">"Side by side"</h2>
            <div class="scroll-x">
                <table class="comparison">
                    <thead><tr><th scope="col">"Percent"</th>{head}</tr></thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
            <div class="charts" class:gone=move || !any_curve()>
                <LineChart title="Conventional loss" series=curves(|p| Some(p.loss_conventional))/>
                <LineChart title="Re-balance loss" series=curves(|p| Some(p.loss_rebalance))/>
                <LineChart title="Cluster recall" series=curves(|p| p.cluster_recall) range=(0.0, 1.0)/>
            </div>
        </section>
    }
}
