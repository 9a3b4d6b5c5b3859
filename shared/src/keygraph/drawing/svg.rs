//! An SVG that stands alone: on a slide, in a page, in light and dark.

use std::fmt::Write as _;

use super::{Placed, label, layout};
use crate::keygraph::{KeyGraph, Vertex, VertexKind};

/// At most this many vertices are drawn, the strongest; more would be a cloud, not a picture.
pub const MAX_DRAWN: usize = 150;

const PADDING: f32 = 28.0;
const LEGEND_HEIGHT: f32 = 44.0;
const LEGEND_WIDTH: f32 = 640.0;

const STYLE: &str = "\
svg{--back:#ffffff;--ink:#1d2430;--soft:#5b6572;--line:#8a97a8;--word:#2f6fb3;--word-fill:#d6e6f7;\
--name:#b85c00;--name-fill:#ffe3c2;--none:#7a7f87;--none-fill:#eef0f2;\
font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','Noto Sans',Arial,sans-serif}\
@media(prefers-color-scheme:dark){svg{--back:#12161d;--ink:#eef2f7;--soft:#a3adba;--line:#8796aa;--word:#7db4ee;\
--word-fill:#1d3a5a;--name:#ffae57;--name-fill:#55340f;--none:#9aa1ab;--none-fill:#262b33}}\
.back{fill:var(--back)}.edge{stroke:var(--line);stroke-linecap:round;fill:none}\
.keyword{fill:var(--word-fill);stroke:var(--word);stroke-width:2}\
.entity{fill:var(--name-fill);stroke:var(--name);stroke-width:2}\
.empty{fill:var(--none-fill);stroke:var(--none);stroke-width:2;stroke-dasharray:4 3}\
text{fill:var(--ink);text-anchor:middle;paint-order:stroke;stroke:var(--back);stroke-width:4px;stroke-linejoin:round}\
.legend{fill:var(--soft);font-size:12px;text-anchor:start}\
.title{font-size:20px;font-weight:600;text-anchor:start}";

/// The graph as SVG: size by rank, line width by shared sentences, circles for keywords, squares for names,
/// a dashed circle for the empty vertex. `title` may be empty.
pub fn svg(graph: &KeyGraph, title: &str) -> String {
    let drawn = &graph.vertices()[..graph.vertices().len().min(MAX_DRAWN)];
    let strongest = drawn
        .first()
        .map_or(1.0, |vertex| vertex.rank)
        .max(f32::MIN_POSITIVE);
    let labels: Vec<String> = drawn.iter().map(label).collect();
    let boxes: Vec<Placed> = drawn
        .iter()
        .zip(&labels)
        .map(|(vertex, label)| sized(vertex, label, strongest))
        .collect();
    let (placed, frame) = layout(graph, &boxes);

    let heading = if title.is_empty() { 0.0 } else { 40.0 };
    let width = frame.width.max(LEGEND_WIDTH) + 2.0 * PADDING;
    let height = frame.height.max(60.0) + 2.0 * PADDING + heading + LEGEND_HEIGHT;
    // The drawing stands in the middle of the sheet.
    let dx = PADDING + (frame.width.max(LEGEND_WIDTH) - frame.width) / 2.0 - frame.left;
    let dy = PADDING + heading - frame.top;

    let mut out = String::new();
    let name = if title.is_empty() { "KeyGraph" } else { title };
    let _ = writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" role="img">"#
    );
    let _ = writeln!(out, "<title>{}</title>", escaped(name));
    let _ = writeln!(out, "<desc>{}</desc>", escaped(&description(graph, drawn.len())));
    let _ = writeln!(out, "<style>{STYLE}</style>");
    let _ = writeln!(out, r#"<rect class="back" width="100%" height="100%"/>"#);
    if !title.is_empty() {
        let _ = writeln!(
            out,
            r#"<text class="title" x="{PADDING}" y="36">{}</text>"#,
            escaped(title)
        );
    }
    let _ = writeln!(out, r#"<g transform="translate({dx:.1} {dy:.1})">"#);
    draw_edges(&mut out, graph, &placed);
    for ((vertex, place), label) in drawn.iter().zip(&placed).zip(&labels) {
        draw_vertex(&mut out, vertex, place, label);
    }
    out.push_str("</g>\n");
    draw_legend(&mut out, PADDING, height - LEGEND_HEIGHT / 2.0 - 4.0);
    out.push_str("</svg>\n");
    out
}

fn description(graph: &KeyGraph, drawn: usize) -> String {
    let (vertices, edges, sentences) = (
        graph.vertices().len(),
        graph.edges().len(),
        graph.sentences().len(),
    );
    let part = if drawn < vertices {
        format!(", the {drawn} strongest drawn")
    } else {
        String::new()
    };
    format!(
        "{vertices} keywords and entities{part}, {edges} pairs that share sentences, {sentences} sentences"
    )
}

/// Font size of a vertex' name, by its rank against the strongest.
fn font_size(share: f32) -> f32 {
    12.0 + 9.0 * share
}

fn sized(vertex: &Vertex, label: &str, strongest: f32) -> Placed {
    let share = vertex.rank / strongest;
    let font = font_size(share);
    // Wide enough for common sans-serif fonts; ideographs and the like take a full square.
    let ems: f32 = label
        .chars()
        .map(|c| {
            if c >= '\u{2e80}' {
                1.05
            } else if c.is_uppercase() {
                0.72
            } else {
                0.56
            }
        })
        .sum();
    Placed {
        x: 0.0,
        y: 0.0,
        radius: 6.0 + 18.0 * share,
        label_width: ems * font + 6.0,
        label_height: font * 1.25 + 2.0,
    }
}

fn draw_edges(out: &mut String, graph: &KeyGraph, placed: &[Placed]) {
    let mut edges: Vec<_> = graph
        .edges()
        .iter()
        .filter(|edge| edge.target < placed.len())
        .collect();
    // The strong ones on top of the faint ones.
    edges.sort_by_key(|edge| edge.weight);
    let heaviest = edges.last().map_or(1.0, |edge| edge.weight as f32);
    // A dense graph keeps its faint edges fainter.
    let density = edges.len() as f32 / placed.len().max(1) as f32;
    let faint = (1.1 / density.max(1.0)).clamp(0.07, 0.5);
    for edge in edges {
        let (a, b) = (&placed[edge.source], &placed[edge.target]);
        let share = if heaviest > 1.0 {
            (edge.weight as f32).ln() / heaviest.ln()
        } else {
            0.0
        };
        let opacity = faint + (0.75 - faint) * share;
        let width = 1.0 + 5.0 * share;
        let _ = writeln!(
            out,
            r#"<line class="edge" x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}" stroke-width="{width:.2}" opacity="{opacity:.2}"/>"#,
            a.x, a.y, b.x, b.y
        );
    }
}

fn draw_vertex(out: &mut String, vertex: &Vertex, place: &Placed, label: &str) {
    let sentences = vertex.sentences.len();
    let tip = format!(
        "{label} · {sentences} {} · rank {:.2}",
        if sentences == 1 { "sentence" } else { "sentences" },
        vertex.rank
    );
    let _ = writeln!(out, "<g><title>{}</title>", escaped(&tip));
    draw_shape(out, vertex.kind, place.x, place.y, place.radius);
    let font = (place.label_height - 2.0) / 1.25;
    let weight = if place.radius > 15.0 {
        r#" font-weight="600""#
    } else {
        ""
    };
    let _ = writeln!(
        out,
        r#"<text x="{:.1}" y="{:.1}" font-size="{font:.1}"{weight}>{}</text></g>"#,
        place.x,
        place.y + place.radius + font,
        escaped(label)
    );
}

fn draw_shape(out: &mut String, kind: VertexKind, x: f32, y: f32, radius: f32) {
    let _ = match kind {
        VertexKind::Keyword => writeln!(
            out,
            r#"<circle class="keyword" cx="{x:.1}" cy="{y:.1}" r="{radius:.1}"/>"#
        ),
        VertexKind::Empty => writeln!(
            out,
            r#"<circle class="empty" cx="{x:.1}" cy="{y:.1}" r="{radius:.1}"/>"#
        ),
        VertexKind::Entity => {
            // A square of the circle's area.
            let side = radius * 1.77;
            let (left, top, round) = (x - side / 2.0, y - side / 2.0, side / 6.0);
            writeln!(
                out,
                r#"<rect class="entity" x="{left:.1}" y="{top:.1}" width="{side:.1}" height="{side:.1}" rx="{round:.1}"/>"#
            )
        }
    };
}

fn draw_legend(out: &mut String, left: f32, y: f32) {
    let mut x = left + 8.0;
    let kinds = [
        (VertexKind::Keyword, "keyword", 90.0),
        (VertexKind::Entity, "named entity", 122.0),
        (VertexKind::Empty, "sentences without keyword", 196.0),
    ];
    for (kind, text, width) in kinds {
        draw_shape(out, kind, x, y, 7.0);
        let _ = writeln!(
            out,
            r#"<text class="legend" x="{:.1}" y="{:.1}">{text}</text>"#,
            x + 13.0,
            y + 4.0
        );
        x += width;
    }
    let _ = writeln!(
        out,
        r#"<line class="edge" x1="{x:.1}" y1="{y:.1}" x2="{:.1}" y2="{y:.1}" stroke-width="4" opacity="0.8"/>"#,
        x + 20.0
    );
    let _ = writeln!(
        out,
        r#"<text class="legend" x="{:.1}" y="{:.1}">shared sentences · size: TextRank</text>"#,
        x + 28.0,
        y + 4.0
    );
}

/// Text that XML can hold.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keygraph::{EntityLexicon, Options};
    use crate::text::Language;

    fn drawn(text: &str) -> String {
        let graph = KeyGraph::build(
            text,
            Language::English,
            &EntityLexicon::default(),
            &Options::default(),
        );
        svg(&graph, "A <title> & more")
    }

    #[test]
    fn kinds_are_told_apart_by_shape() {
        let svg = drawn("Cocoa from Ghana sells. The cocoa is good. It is so.");
        for class in ["keyword", "entity", "empty"] {
            // Once in the legend at least, once in the drawing at least.
            assert!(svg.matches(&format!("class=\"{class}\"")).count() >= 2, "{class}");
        }
    }

    #[test]
    fn markup_in_a_text_stays_text() {
        let svg = drawn("<script>alert(1)</script> & \"R<D\" \u{1} AT&T met AT&T.");
        assert!(!svg.contains("<script"));
        assert!(svg.contains("A &lt;title&gt; &amp; more"));
    }

    #[test]
    fn an_empty_graph_is_still_a_picture() {
        let svg = svg(&KeyGraph::default(), "");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }
}
