//! GraphViz text.

use std::fmt::Write as _;

use super::label;
use crate::keygraph::{KeyGraph, VertexKind};

/// The graph in the DOT language; draw it with `neato -Tsvg` or `sfdp -Tpng`.
pub fn dot(graph: &KeyGraph) -> String {
    let strongest = graph
        .vertices()
        .first()
        .map_or(1.0, |vertex| vertex.rank)
        .max(f32::MIN_POSITIVE);
    let mut out = String::from(
        "graph keygraph {\n  graph [overlap=prism, splines=true];\n  node [fontname=\"sans-serif\"];\n",
    );
    for vertex in graph.vertices() {
        let (shape, colour, style) = match vertex.kind {
            VertexKind::Keyword => ("ellipse", "#2f6fb3", "solid"),
            VertexKind::Entity => ("box", "#c96a12", "solid"),
            VertexKind::Empty => ("ellipse", "#7a7f87", "dashed"),
        };
        let text = label(vertex).replace('\\', "\\\\").replace('"', "\\\"");
        let size = 10.0 + 10.0 * (vertex.rank / strongest).sqrt();
        let _ = writeln!(
            out,
            "  v{} [label=\"{text}\", shape={shape}, color=\"{colour}\", style={style}, fontsize={size:.1}];",
            vertex.id
        );
    }
    for edge in graph.edges() {
        let width = 1.0 + (edge.weight as f32).ln();
        let _ = writeln!(
            out,
            "  v{} -- v{} [weight={}, penwidth={width:.2}, tooltip=\"{} shared\"];",
            edge.source, edge.target, edge.weight, edge.weight
        );
    }
    out.push_str("}\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keygraph::{EntityLexicon, Options};
    use crate::text::Language;

    #[test]
    fn every_vertex_and_edge_is_named_once_and_quotes_are_escaped() {
        let lexicon = EntityLexicon::default();
        let text = "The O\"Neill file and the fish file. Fish swim. So it is.";
        let graph = KeyGraph::build(text, Language::English, &lexicon, &Options::default());
        let dot = dot(&graph);
        assert_eq!(dot.matches("label=").count(), graph.vertices().len());
        assert_eq!(dot.matches(" -- ").count(), graph.edges().len());
        assert_eq!(dot.matches('"').count() % 2, 0);
    }
}
