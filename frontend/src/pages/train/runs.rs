//! The table of runs.

use gnnxml_page_logic::figures;
use gnnxml_shared::api::{Run, RunStatus, Stage};
use leptos::prelude::*;

use super::TrainState;

/// A stage's name for people.
pub(super) fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Read => "Read the corpus",
        Stage::Encode => "Encode sentences",
        Stage::Cluster => "Cluster labels",
        Stage::Match => "Train the matcher",
        Stage::Rank => "Train the rankers",
        Stage::Calibrate => "Calibrate",
        Stage::Save => "Save the model",
    }
}

/// A status for people.
pub(super) fn status_name(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Queued => "queued",
        RunStatus::Running => "running",
        RunStatus::Cancelling => "stopping",
        RunStatus::Cancelled => "cancelled",
        RunStatus::Interrupted => "interrupted",
        RunStatus::Failed => "failed",
        RunStatus::Done => "done",
    }
}

pub(super) fn status_class(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Queued | RunStatus::Cancelling => "status waiting",
        RunStatus::Running => "status running",
        RunStatus::Cancelled | RunStatus::Interrupted => "status stopped",
        RunStatus::Failed => "status failed",
        RunStatus::Done => "status done",
    }
}

/// A figure's name that explains itself when it is pointed at.
pub(super) fn figure_name(name: &'static str) -> impl IntoView {
    let k = name.split('@').nth(1).unwrap_or("k");
    let explained = match name.split('@').next().unwrap_or(name) {
        "P" => format!("Precision: how many of the {k} best tags are right"),
        "PSP" => format!("Propensity-scored precision: as P@{k}, with rare labels counting more"),
        "nDCG" => format!("As P@{k}, with the first tags counting more"),
        "RP" => format!("As P@{k}, where a document with fewer than {k} labels can still reach 100"),
        "micro_f1" => "F1 over all tags of all documents".to_owned(),
        "macro_f1" => "F1 of each label, averaged: rare labels count as much as common ones".to_owned(),
        _ => String::new(),
    };
    let shown = match name {
        "micro_f1" => "micro F1",
        "macro_f1" => "macro F1",
        other => other,
    };
    view! { <abbr title=explained>{shown}</abbr> }
}

/// A figure of a run, or a dash.
pub(super) fn figure(run: &Run, name: &str) -> String {
    run.metrics
        .get(name)
        .map_or_else(|| "–".to_owned(), |value| format!("{value:.1}"))
}

pub(super) fn elapsed(run: &Run) -> Option<String> {
    let started = run.started?;
    let finished = run.finished?;
    Some(figures::duration(
        finished.saturating_sub(started) as f64 / 1000.0,
    ))
}

/// All runs, newest first, each with a box to compare it.
#[component]
pub(super) fn RunTable() -> impl IntoView {
    let state = expect_context::<TrainState>();
    let rows = move || {
        state.runs.with(|list| {
            let runs = list.as_ref()?.as_ref().ok()?;
            if runs.runs.is_empty() {
                return Some(view! { <tr><td colspan="7" class="soft">"No run yet. Choose a corpus and start one."</td></tr> }.into_any());
            }
            Some(runs.runs.iter().map(|run| row(state, run)).collect_view().into_any())
        })
    };
    view! {
        <section class="sheet stack" aria-labelledby="runs-title">
            <h2 id="runs-title">"Runs"</h2>
            <div class="scroll-x">
                <table class="runs">
                    <thead><tr>
                        <th scope="col"><span class="visually-hidden">"Compare"</span></th>
                        <th scope="col">"Run"</th><th scope="col">"Status"</th>
                        <th scope="col" class="number">{figure_name("P@1")}</th><th scope="col" class="number">{figure_name("P@5")}</th>
                        <th scope="col" class="number">{figure_name("PSP@5")}</th><th scope="col" class="number">"Time"</th>
                    </tr></thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
            <p class="small soft">"Tick two or more to compare them. P@5: how many of the five best tags are right, in percent; PSP@5: the same with rare labels counting more."</p>
        </section>
    }
}

fn row(state: TrainState, run: &Run) -> impl IntoView + use<> {
    let id = run.id;
    let ticked = move || state.compared.with(|compared| compared.contains(&id));
    let tick = move |_| {
        state.compared.update(|compared| {
            if let Some(index) = compared.iter().position(|other| *other == id) {
                compared.remove(index);
            } else {
                compared.push(id);
                compared.sort_unstable();
            }
        });
    };
    let status = match (run.status, run.stage) {
        (RunStatus::Running, Some(stage)) => {
            let share = run
                .stage_progress
                .map(|share| format!(" {:.0} %", share * 100.0))
                .unwrap_or_default();
            format!("{}{share}", stage_name(stage))
        }
        (status, _) => status_name(status).to_owned(),
    };
    let corpus = state.corpus_name(run.settings.corpus);
    let label = format!("Compare {}", run.name);
    view! {
        <tr>
            <td><input type="checkbox" aria-label=label prop:checked=ticked on:change=tick/></td>
            <th scope="row">
                <a href=format!("/train/run/{id}")>{run.name.clone()}</a>
                <span class="small soft block">{run.settings.preset.name()} ", " {corpus}</span>
            </th>
            <td><span class=status_class(run.status)>{status}</span></td>
            <td class="number">{figure(run, "P@1")}</td>
            <td class="number">{figure(run, "P@5")}</td>
            <td class="number">{figure(run, "PSP@5")}</td>
            <td class="number">{elapsed(run).unwrap_or_else(|| "–".to_owned())}</td>
        </tr>
    }
}
