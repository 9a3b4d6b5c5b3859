//! Painting a prepared frame on a 2-D canvas.

use std::f64::consts::TAU;

use gnnxml_page_logic::map::{Frame, Owner, View};
use wasm_bindgen::JsValue;
use web_sys::CanvasRenderingContext2d;

use super::colour::Palette;
use super::vocabulary::Vocabulary;

/// Fonts of the two kinds of names; sizes come from the frame.
const CLUSTER_FAMILY: &str = "ui-serif, 'Iowan Old Style', 'Palatino Linotype', Palatino, Georgia, serif";
const LABEL_FAMILY: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

/// Everything a frame is painted from; `dots_elsewhere` when the GPU draws them on the canvas below.
pub(super) struct Painting<'a> {
    pub(super) vocabulary: &'a Vocabulary,
    pub(super) palette: &'a Palette,
    pub(super) view: &'a View,
    /// The cluster that stands out, if any; the others fade.
    pub(super) cluster: Option<u32>,
    pub(super) label: Option<u32>,
    pub(super) neighbours: &'a [u32],
    pub(super) pointed: Option<u32>,
    pub(super) dots_elsewhere: bool,
}

impl Painting<'_> {
    /// The cluster whose dots stand out: the one in focus, or that of the label in focus.
    pub(super) fn own_cluster(&self) -> Option<u32> {
        self.cluster.or_else(|| {
            let cluster = self.vocabulary.cluster_of(self.label?)?;
            Some(cluster.id)
        })
    }
}

/// Widths of the letters at a font size of one pixel, measured once: measuring 30,000 names would take long.
pub(super) struct LetterWidths {
    ascii: [f32; 128],
}

impl LetterWidths {
    pub(super) fn measure(context: &CanvasRenderingContext2d) -> Result<Self, JsValue> {
        context.set_font(&format!("600 100px {CLUSTER_FAMILY}"));
        let mut ascii = [0.6; 128];
        for code in 32u8..127 {
            let width = context.measure_text(&char::from(code).to_string())?.width();
            ascii[code as usize] = width as f32 / 100.0;
        }
        Ok(Self { ascii })
    }

    pub(super) fn of(&self, name: &str) -> f32 {
        name.chars()
            .map(|letter| match self.ascii.get(letter as usize) {
                Some(width) => *width,
                // Ideographs are square, other letters about as wide as ours.
                None if letter >= '\u{2e80}' => 1.0,
                None => 0.62,
            })
            .sum()
    }
}

/// Paints the frame. `ratio` is the device's pixels per CSS pixel.
pub(super) fn paint(
    context: &CanvasRenderingContext2d,
    ratio: f64,
    frame: &Frame,
    painting: &Painting<'_>,
) -> Result<(), JsValue> {
    context.set_transform(ratio, 0.0, 0.0, ratio, 0.0, 0.0)?;
    let [width, height] = painting.view.size;
    context.clear_rect(0.0, 0.0, width.into(), height.into());
    if !painting.dots_elsewhere {
        paint_dots(context, frame, painting)?;
    }
    paint_neighbours(context, painting)?;
    paint_names(context, frame, painting)
}

fn paint_dots(
    context: &CanvasRenderingContext2d,
    frame: &Frame,
    painting: &Painting<'_>,
) -> Result<(), JsValue> {
    let own_cluster = painting.own_cluster();
    for group in frame.dots.chunk_by(|one, other| one.cluster == other.cluster) {
        let cluster = group[0].cluster;
        let faded = own_cluster.is_some_and(|own| own != cluster);
        context.set_fill_style_str(&painting.palette.cluster(cluster, faded));
        context.begin_path();
        for dot in group {
            let (x, y, r) = (f64::from(dot.at[0]), f64::from(dot.at[1]), f64::from(dot.radius));
            if r < 1.6 {
                context.rect(x - r, y - r, 2.0 * r, 2.0 * r);
            } else {
                context.move_to(x + r, y);
                context.arc(x, y, r, 0.0, TAU)?;
            }
        }
        context.fill();
    }
    Ok(())
}

fn paint_neighbours(context: &CanvasRenderingContext2d, painting: &Painting<'_>) -> Result<(), JsValue> {
    let place = |label: u32| {
        let index = label as usize;
        let at = [
            *painting.vocabulary.map.x.get(index)?,
            *painting.vocabulary.map.y.get(index)?,
        ];
        let [x, y] = painting.view.to_screen(at);
        Some((f64::from(x), f64::from(y)))
    };
    context.set_stroke_style_str(&painting.palette.red);
    if let Some((x, y)) = painting.label.and_then(place) {
        context.set_line_width(1.0);
        for other in painting.neighbours.iter().copied().filter_map(place) {
            context.begin_path();
            context.move_to(x, y);
            context.line_to(other.0, other.1);
            context.stroke();
        }
        ring(context, x, y, 9.0)?;
    }
    if let Some((x, y)) = painting.pointed.and_then(place) {
        ring(context, x, y, 7.0)?;
    }
    Ok(())
}

fn ring(context: &CanvasRenderingContext2d, x: f64, y: f64, radius: f64) -> Result<(), JsValue> {
    context.set_line_width(2.0);
    context.begin_path();
    context.arc(x, y, radius, 0.0, TAU)?;
    context.stroke();
    Ok(())
}

fn paint_names(
    context: &CanvasRenderingContext2d,
    frame: &Frame,
    painting: &Painting<'_>,
) -> Result<(), JsValue> {
    context.set_text_align("center");
    context.set_text_baseline("middle");
    context.set_line_join("round");
    context.set_line_width(3.5);
    context.set_stroke_style_str(&painting.palette.paper);
    for clusters in [false, true] {
        for name in frame
            .names
            .iter()
            .filter(|name| matches!(name.owner, Owner::Cluster(_)) == clusters)
        {
            let (x, y) = (f64::from(name.at[0]), f64::from(name.at[1]));
            let text = match name.owner {
                Owner::Cluster(id) => {
                    context.set_font(&format!("600 {}px {CLUSTER_FAMILY}", name.font));
                    context.set_fill_style_str(&painting.palette.ink);
                    painting
                        .vocabulary
                        .cluster(id)
                        .map_or("", |cluster| &cluster.name)
                }
                Owner::Label(id) => {
                    let strong = painting.label == Some(id) || painting.pointed == Some(id);
                    context.set_font(&format!(
                        "{} {}px {LABEL_FAMILY}",
                        if strong { 600 } else { 400 },
                        name.font
                    ));
                    let colour = if strong {
                        &painting.palette.ink
                    } else {
                        &painting.palette.ink_soft
                    };
                    context.set_fill_style_str(colour);
                    painting.vocabulary.name(id)
                }
            };
            context.stroke_text(text, x, y)?;
            context.fill_text(text, x, y)?;
        }
    }
    Ok(())
}
