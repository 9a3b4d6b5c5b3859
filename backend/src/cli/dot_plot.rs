//! A dot plot as SVG: a row a name, a panel a figure, a line where the first row stands.

use std::fmt::Write as _;

/// A row and where its dots stand.
#[derive(Debug)]
pub(super) struct Dot {
    pub(super) name: String,
    pub(super) values: [f64; 2],
}

const ROW: f64 = 20.0;
const NAMES: f64 = 250.0;
const PANEL: f64 = 240.0;
const GAP: f64 = 40.0;
const TOP: f64 = 34.0;

/// Draws `dots` under the two `titles`; rows whose figure is no number get no dot.
pub(super) fn dot_plot(titles: [&str; 2], dots: &[Dot]) -> String {
    let (width, height) = (NAMES + 2.0 * (PANEL + GAP), TOP + ROW * dots.len() as f64 + 30.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    let middle = |row: usize| TOP + ROW * (row as f64 + 0.5);
    for (row, dot) in dots.iter().enumerate() {
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#222\">{}</text>",
            NAMES - 12.0,
            middle(row) + 4.0,
            escaped(&dot.name)
        );
    }
    for (panel, title) in titles.iter().enumerate() {
        let left = NAMES + panel as f64 * (PANEL + GAP);
        let values: Vec<f64> = dots.iter().map(|dot| dot.values[panel]).collect();
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let lowest = finite().fold(f64::INFINITY, f64::min).floor();
        let highest = finite().fold(f64::NEG_INFINITY, f64::max).ceil();
        if lowest > highest {
            continue;
        }
        let scale = PANEL / (highest - lowest).max(1.0);
        let place = |value: f64| left + (value - lowest) * scale;
        let (bottom, centre) = (TOP + ROW * dots.len() as f64, left + PANEL / 2.0);
        let _ = writeln!(
            svg,
            "<text x=\"{centre}\" y=\"20\" text-anchor=\"middle\" font-weight=\"bold\" fill=\"#222\">{}</text>\n\
             <path d=\"M{left} {bottom}h{PANEL}\" stroke=\"#999\"/>\n\
             <text x=\"{left}\" y=\"{1}\" text-anchor=\"middle\" fill=\"#555\">{lowest}</text>\n\
             <text x=\"{2}\" y=\"{1}\" text-anchor=\"middle\" fill=\"#555\">{highest}</text>",
            escaped(title),
            bottom + 18.0,
            left + PANEL,
        );
        if let Some(first) = values.first().filter(|first| first.is_finite()) {
            let x = place(*first);
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#c9c9c9\" stroke-dasharray=\"3 3\"/>"
            );
        }
        for (row, value) in values.iter().enumerate().filter(|(_, value)| value.is_finite()) {
            let (x, y) = (place(*value), middle(row));
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y}\" r=\"4\" fill=\"#2f6f8f\"><title>{value:.2}</title></circle>"
            );
        }
    }
    svg + "</svg>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_stands_where_its_value_does() {
        let dot = |name: &str, values| Dot {
            name: name.to_owned(),
            values,
        };
        let svg = dot_plot(
            ["P", "<Q>"],
            &[dot("first", [10.0, 1.0]), dot("a & b", [12.0, f64::NAN])],
        );
        // The lowest value stands at the panel's left end, the highest at its right end.
        assert!(svg.contains(&format!("cx=\"{NAMES:.1}\"")), "{svg}");
        assert!(svg.contains(&format!("cx=\"{:.1}\"", NAMES + PANEL)), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 3, "what is no number has no dot");
        assert!(svg.contains("a &amp; b") && svg.contains("&lt;Q&gt;"));
    }

    #[test]
    fn no_rows_are_no_panels() {
        assert!(!dot_plot(["P", "Q"], &[]).contains("<circle"));
    }
}
