//! Why a tag was given: the contributions that add up to its score.

use gnnxml_page_logic::figures;
use gnnxml_shared::api::{Evidence, Tag};
use leptos::prelude::*;

use super::state::{Lit, TagState};

/// At most so many words are listed; the rest is summed up.
const WORDS: usize = 8;

/// One line of the account.
struct Line {
    what: String,
    note: &'static str,
    weight: f32,
}

fn account(evidence: &Evidence) -> Vec<Line> {
    let mut lines: Vec<Line> = evidence
        .words
        .iter()
        .take(WORDS)
        .map(|word| Line {
            what: word.text.clone(),
            note: "word",
            weight: word.weight,
        })
        .collect();
    let rest: f32 = evidence
        .words
        .iter()
        .skip(WORDS)
        .map(|word| word.weight)
        .sum::<f32>()
        + evidence.other_words;
    let sums = [
        ("all other words", rest),
        ("meaning of the text", evidence.embedding),
        ("similar documents", evidence.neighbours),
        ("its name in the text", evidence.name),
        ("its cluster matched", evidence.cluster),
        ("how common it is", evidence.bias),
    ];
    lines.extend(
        sums.into_iter()
            .filter(|(_, weight)| weight.abs() >= 0.005)
            .map(|(what, weight)| Line {
                what: what.to_owned(),
                note: "sum",
                weight,
            }),
    );
    lines
}

/// The panel below the tags. It explains the lit tag, or the first one.
#[component]
pub(super) fn EvidencePanel() -> impl IntoView {
    let state = expect_context::<TagState>();
    let tag = Memo::new(move |_| {
        let wanted = match state.lit() {
            Some(Lit::Tag(label)) => Some(label),
            _ => None,
        };
        state.tagged.with(|tagged| {
            let tags = &tagged.as_ref()?.response.tags;
            wanted
                .and_then(|label| tags.iter().find(|tag| tag.label == label))
                .or_else(|| tags.first())
                .cloned()
        })
    });
    let content = move || {
        match tag.get() {
        None => view! { <p class="empty small">"Point at a tag to see which words speak for it and which against."</p> }.into_any(),
        Some(tag) => view! {
            <h3>{format!("Why “{}”", tag.name)}</h3>
            {explain(&tag)}
        }
        .into_any(),
    }
    };
    view! { <div class="evidence">{content}</div> }
}

fn explain(tag: &Tag) -> AnyView {
    let Some(evidence) = &tag.evidence else {
        return view! { <p class="empty small">"This model gives no evidence for its tags."</p> }.into_any();
    };
    let lines = account(evidence);
    let largest = lines
        .iter()
        .map(|line| line.weight.abs())
        .fold(0.0f32, f32::max)
        .max(1e-6);
    let rows = lines
        .into_iter()
        .map(|line| {
            let width = format!("{:.1}%", line.weight.abs() / largest * 50.0);
            let class = if line.weight >= 0.0 {
                "pull for"
            } else {
                "pull against"
            };
            view! {
                <tr>
                    <th scope="row" class=line.note>{line.what}</th>
                    <td class="pull-cell"><span class=class style:width=width></span></td>
                    <td class="number">{figures::signed(line.weight)}</td>
                </tr>
            }
        })
        .collect_view();
    let total = figures::signed(evidence.total);
    let score = figures::percent(tag.score);
    view! {
        <table class="account small">
            <caption class="visually-hidden">"Contributions to the log-score, before calibration"</caption>
            <tbody>{rows}</tbody>
            <tfoot>
                <tr><th scope="row">"together"</th><td class="faint nowrap" title="Contributions add up to the label's score on a logarithmic scale; calibration turns it into a probability that can be read.">"log-score, hence " {score}</td><td class="number">{total}</td></tr>
            </tfoot>
        </table>
    }
    .into_any()
}
