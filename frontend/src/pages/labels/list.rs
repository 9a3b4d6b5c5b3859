//! The same as the map for keyboard and screen reader: clusters in a table, labels below each.

use std::sync::Arc;

use gnnxml_page_logic::figures;
use leptos::prelude::*;

use super::vocabulary::Vocabulary;
use super::{Focus, LabelsState};

/// Labels listed below an open cluster before “all of them” leads to the panel.
const SHOWN: usize = 40;

/// All clusters, largest first.
#[component]
pub(super) fn ClusterTable(vocabulary: Arc<Vocabulary>) -> impl IntoView {
    let state = expect_context::<LabelsState>();
    let mut clusters = vocabulary.clusters.clone();
    clusters.sort_by_key(|cluster| (std::cmp::Reverse(cluster.documents), cluster.id));
    let rows = clusters
        .into_iter()
        .map(|cluster| {
            let focus = Focus::Cluster(cluster.id);
            let current = move || (state.focus.get() == focus).then_some("true");
            let vocabulary = vocabulary.clone();
            let members = move || {
                (state.focus.get() == focus).then(|| {
                    let labels = vocabulary.members(cluster.id);
                    let more = labels.len().saturating_sub(SHOWN);
                    let items = labels
                        .iter()
                        .take(SHOWN)
                        .map(|&label| {
                            view! {
                                <li><a href=Focus::Label(label).address()>{vocabulary.name(label).to_owned()}</a>
                                " " <span class="faint small">{figures::count(vocabulary.count(label).into())}</span></li>
                            }
                        })
                        .collect_view();
                    view! {
                        <ul class="label-run">{items}</ul>
                        {(more > 0).then(|| view! { <p class="small soft">{format!("and {more} more in the panel")}</p> })}
                    }
                })
            };
            view! {
                <tr>
                    <th scope="row">
                        <a href=focus.address() aria-current=current>{cluster.name.clone()}</a>
                        {members}
                    </th>
                    <td class="soft small terms">{cluster.terms.join(", ")}</td>
                    <td class="number">{figures::count(cluster.labels.into())}</td>
                    <td class="number">{figures::count(cluster.documents.into())}</td>
                </tr>
            }
        })
        .collect_view();
    view! {
        <div class="cluster-table scroll-x">
            <table>
                <caption class="visually-hidden">"Label clusters"</caption>
                <thead><tr><th scope="col">"Cluster"</th><th scope="col" class="terms">"Set apart by"</th><th scope="col" class="number">"Labels"</th><th scope="col" class="number">"Documents"</th></tr></thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}
