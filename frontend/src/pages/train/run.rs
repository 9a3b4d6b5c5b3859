//! One run: its stages, curves and log while it goes, its figures when it is done.

use gloo::net::http::Method;
use gnnxml_page_logic::figures;
use gnnxml_page_logic::run_story::{EpochPoint, StageState};
use gnnxml_shared::api::{LogLevel, ModelSummary, PublishRun, Run, RunStatus, Stage};
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::hooks::use_navigate;

use super::TrainState;
use super::chart::{LineChart, Series};
use super::events::{Following, Line};
use super::runs::{figure_name, stage_name, status_class, status_name};
use crate::notice::TroubleNotice;
use crate::server::{self, Trouble};
use crate::shell::Models;

/// One series over the epochs; epochs without a value leave a gap.
pub(super) fn over_epochs(
    epochs: &[EpochPoint],
    name: impl Into<String>,
    colour: usize,
    value: impl Fn(&EpochPoint) -> Option<f64>,
) -> Series {
    let points = epochs
        .iter()
        .map(|point| (f64::from(point.epoch), value(point).unwrap_or(f64::NAN)))
        .collect();
    Series {
        name: name.into(),
        colour,
        points,
    }
}

/// The page of a run.
#[component]
pub(super) fn RunPage(id: u64) -> impl IntoView {
    let state = expect_context::<TrainState>();
    let models = expect_context::<Models>();
    let following = Following::start(id);
    let story = following.story;
    let trouble = RwSignal::new(None::<Trouble>);
    let known = Memo::new(move |_| {
        let listed = state.runs.with(|list| {
            let list = list.as_ref()?.as_ref().ok()?;
            list.runs.iter().find(|run| run.id == id).cloned()
        });
        // The list may be older than the stream's last word.
        match (listed, following.ended.get()) {
            (Some(listed), Some(ended)) if !listed.status.is_over() => Some(ended),
            (None, ended) => ended,
            (listed, _) => listed,
        }
    });
    Effect::new(move |_| {
        if following.line.get() == Line::Over {
            state.refresh_runs();
        }
    });
    let command = move |action: &'static str| {
        spawn_local(async move {
            let answer = server::command(Method::POST, &format!("/api/v1/runs/{id}/{action}")).await;
            if action == "resume" && answer.is_ok() {
                following.ended.try_set(None);
                following.open();
            }
            trouble.try_set(answer.err());
            state.refresh_runs();
        });
    };
    let publish = move |_| {
        spawn_local(async move {
            let answer: Result<ModelSummary, Trouble> = server::send(
                Method::POST,
                &format!("/api/v1/runs/{id}/publish"),
                &PublishRun::default(),
            )
            .await;
            trouble.try_set(answer.err());
            state.refresh_runs();
            models.refresh();
        });
    };
    let navigate = use_navigate();
    let delete = move |_| {
        let navigate = navigate.clone();
        spawn_local(async move {
            match server::command(Method::DELETE, &format!("/api/v1/runs/{id}")).await {
                Ok(()) => navigate("/train", leptos_router::NavigateOptions::default()),
                Err(error) => {
                    trouble.try_set(Some(error));
                }
            }
        });
    };
    let head = move || {
        let Some(run) = known.get() else {
            let loaded = state.runs.with(|list| list.as_ref().is_some_and(Result::is_ok));
            return if loaded {
                view! { <h1>"There is no such run"</h1> }.into_any()
            } else {
                view! { <h1>"Run " {id}</h1> }.into_any()
            };
        };
        view! {
            <div>
                <h1>{run.name.clone()}</h1>
                <p class="soft">{describe(state, &run)}</p>
            </div>
            <span class=status_class(run.status)>{status_name(run.status)}</span>
        }
        .into_any()
    };
    let status = move || known.with(|run| run.as_ref().map(|run| run.status));
    let is = move |wanted: fn(RunStatus) -> bool| move || status().is_some_and(wanted);
    let published = move || known.with(|run| run.as_ref().is_some_and(|run| run.model.is_some()));
    let line = move || match following.line.get() {
        Line::Connecting => "Connecting…",
        Line::Live => "Live",
        Line::Cut => "The line to the server is cut; trying again…",
        Line::Over => "",
    };
    let error = move || {
        known.with(|run| {
            let run = run.as_ref()?;
            let error = run.error.clone()?;
            let log = run.log.join("\n");
            Some(view! {
                <div class="notice" role="alert"><p>{error}</p></div>
                {(!log.is_empty()).then(|| view! { <pre class="log small mono" tabindex="0">{log}</pre> })}
            })
        })
    };
    let losses = Signal::derive(move || {
        story.with(|story| {
            vec![
                over_epochs(&story.epochs, "conventional", 0, |p| Some(p.loss_conventional)),
                over_epochs(&story.epochs, "re-balance", 1, |p| Some(p.loss_rebalance)),
                over_epochs(&story.epochs, "validation", 2, |p| p.validation_loss),
            ]
        })
    });
    let recall = Signal::derive(move || {
        story.with(|story| {
            vec![
                over_epochs(&story.epochs, "cluster recall", 2, |p| p.cluster_recall),
                over_epochs(&story.epochs, "α", 3, |p| Some(p.alpha)),
            ]
        })
    });
    let has_epochs = Memo::new(move |_| story.with(|story| !story.epochs.is_empty()));
    let has_epochs = move || has_epochs.get();
    let stages = Stage::ALL.map(|stage| view! { <StageRow following stage/> });
    view! {
        <p class="overline"><a href="/train">"All runs"</a></p>
        <div class="page-head run-head">{head}</div>
        <div class="row run-actions">
            <button on:click=move |_| command("cancel") disabled=move || !is(|s| matches!(s, RunStatus::Queued | RunStatus::Running))()>"Cancel"</button>
            <button on:click=move |_| command("resume") disabled=move || !is(RunStatus::is_resumable)()>"Resume"</button>
            <button class="primary" on:click=publish disabled=move || !is(|s| s == RunStatus::Done)() || published()>
                {move || if published() { "Published" } else { "Publish" }}
            </button>
            <button class="quiet danger" on:click=delete disabled=move || !is(RunStatus::is_over)()>"Delete"</button>
            <span class="small soft" role="status" id="run-line">{line}</span>
        </div>
        {move || trouble.get().map(|trouble| view! { <TroubleNotice trouble/> })}
        {error}
        <div class="run-columns">
            <section class="sheet stack" aria-labelledby="stages-title">
                <h2 id="stages-title">"Stages"</h2>
                <ol class="stages">{stages}</ol>
                <Figures following run=known/>
            </section>
            <section class="sheet stack" aria-labelledby="curves-title">
                <h2 id="curves-title">"Graph network"</h2>
                {move || if has_epochs() {
                    view! {
                        <div class="charts">
                            <LineChart title="Loss" series=losses/>
                            <LineChart title="Cluster recall and α" series=recall range=(0.0, 1.0)/>
                        </div>
                        <p class="small soft">"Recall: the share of a text’s true clusters among those it is matched to. α: how much the branch that sees every document alike counts against the one that favours rare labels."</p>
                    }.into_any()
                } else {
                    view! { <p class="soft small">"No epoch yet. A run that matches clusters with a linear classifier alone has none."</p> }.into_any()
                }}
            </section>
            <section class="sheet stack log-sheet" aria-labelledby="log-title">
                <h2 id="log-title">"Log"</h2>
                <Log following/>
            </section>
        </div>
    }
}

fn describe(state: TrainState, run: &Run) -> String {
    let mut said = vec![
        format!("preset {}", run.settings.preset.name()),
        state.corpus_name(run.settings.corpus),
    ];
    if let Some(seed) = run.settings.seed {
        said.push(format!("seed {seed}"));
    }
    if run.attempts > 1 {
        said.push(format!("attempt {}", run.attempts));
    }
    if let Some(time) = super::runs::elapsed(run) {
        said.push(time);
    }
    said.join(" · ")
}

#[component]
fn StageRow(following: Following, stage: Stage) -> impl IntoView {
    let state = Memo::new(move |_| following.story.with(|story| story.stage(stage)));
    let share = move || match state.get() {
        StageState::Waiting => 0.0,
        StageState::Running { share, .. } => share.unwrap_or(0.03),
        StageState::Reused | StageState::Done { .. } => 1.0,
    };
    let note = move || match state.get() {
        StageState::Waiting => String::new(),
        StageState::Running { share: None, .. } => "running".to_owned(),
        StageState::Running {
            share: Some(share),
            seconds_left,
        } => match seconds_left {
            Some(left) => format!("{:.0} %, {} left", share * 100.0, figures::duration(left)),
            None => format!("{:.0} %", share * 100.0),
        },
        StageState::Reused => "kept from before".to_owned(),
        StageState::Done { seconds } => figures::duration(seconds),
    };
    let running = move || matches!(state.get(), StageState::Running { .. });
    view! {
        <li class="stage" class:running=running class:waiting=move || state.get() == StageState::Waiting>
            <span>{stage_name(stage)}</span>
            <span class="small soft number">{note}</span>
            <span class="bar" aria-hidden="true"><span class="stage-fill bar-fill" style:width=move || format!("{:.1}%", share() * 100.0)></span></span>
        </li>
    }
}

/// Figures worth a row, in this order, when the run has them.
pub(super) const FIGURES: [&str; 11] = [
    "P@1", "P@3", "P@5", "nDCG@3", "nDCG@5", "PSP@1", "PSP@3", "PSP@5", "RP@5", "micro_f1", "macro_f1",
];

#[component]
fn Figures(following: Following, run: Memo<Option<Run>>) -> impl IntoView {
    let has_figures = move || {
        following.story.with(|story| !story.metrics.is_empty())
            || run.with(|run| run.as_ref().is_some_and(|run| !run.metrics.is_empty()))
    };
    let rows = move || {
        let mut metrics = following.story.with(|story| story.metrics.clone());
        if let Some(run) = run.get() {
            metrics.extend(run.metrics);
        }
        FIGURES
            .iter()
            .filter_map(|name| {
                let value = metrics.get(*name)?;
                Some(view! { <div><dt>{figure_name(name)}</dt><dd>{format!("{value:.2}")}</dd></div> })
            })
            .collect_view()
    };
    view! {
        <div class="figures" class:gone=move || !has_figures()>
            <h3>"On the validation documents, in percent"</h3>
            <dl class="facts figures-list">{rows}</dl>
        </div>
    }
}

#[component]
fn Log(following: Following) -> impl IntoView {
    let lines = move || {
        following.story.with(|story| {
            if story.log.is_empty() {
                return view! { <p class="soft small">"Nothing was logged yet."</p> }.into_any();
            }
            story
                .log
                .iter()
                .rev()
                .take(200)
                .map(|line| {
                    let class = match line.level {
                        LogLevel::Info => "log-line",
                        LogLevel::Warning => "log-line warning",
                        LogLevel::Error => "log-line error",
                    };
                    view! { <p class=class>{line.message.clone()}</p> }
                })
                .collect_view()
                .into_any()
        })
    };
    view! { <div class="log small mono" tabindex="0" role="log" aria-label="Log, newest first">{lines}</div> }
}
