//! A KeyGraph as a picture: GraphViz text, or an SVG that needs nothing else.
//!
//! Both are pure functions of the graph: the same graph gives the same bytes.
//!
//! ```
//! use gnnxml_shared::keygraph::{EntityLexicon, KeyGraph, Options, drawing};
//! use gnnxml_shared::text::Language;
//! let text = "Cocoa from Ghana is sold in London. London pays well for cocoa.";
//! let graph = KeyGraph::build(text, Language::English, &EntityLexicon::default(), &Options::default());
//! assert!(drawing::dot(&graph).starts_with("graph keygraph {"));
//! assert!(drawing::svg(&graph, "Cocoa").contains(">London</text>"));
//! ```

mod dot;
mod layout;
mod svg;

pub use dot::dot;
pub use layout::{Frame, Placed, layout};
pub use svg::{MAX_DRAWN, svg};

use super::{Vertex, VertexKind};

/// What a picture writes beside a vertex.
fn label(vertex: &Vertex) -> String {
    const LONGEST: usize = 28;
    if vertex.kind == VertexKind::Empty {
        return "no keyword".to_owned();
    }
    let mut label: String = vertex
        .text
        .chars()
        .filter(|c| !c.is_control())
        .take(LONGEST + 1)
        .collect();
    if label.chars().count() > LONGEST {
        label = label.chars().take(LONGEST - 1).collect();
        label.push('…');
    }
    label
}
