//! Cutting a text into pieces that each carry the same marks, so that overlapping highlights nest nowhere.

/// What a piece of text is part of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Marks {
    /// The vertex whose occurrence it is.
    pub vertex: Option<usize>,
    /// The sentence it lies in.
    pub sentence: Option<usize>,
    /// How much it speaks for (positive) or against (negative) the tag in view, −1 to 1.
    pub evidence: f32,
    /// How much its sentence speaks for the tag in view, 0 to 1.
    pub sentence_evidence: f32,
}

/// A piece of text, by bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    pub start: usize,
    pub end: usize,
    pub marks: Marks,
}

/// One mark over a byte range. Later layers win over earlier ones where they set the same field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layer {
    pub start: usize,
    pub end: usize,
    pub mark: Mark,
}

/// See [`Marks`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    Vertex(usize),
    Sentence(usize),
    Evidence(f32),
    SentenceEvidence(f32),
}

/// Cuts `text` at every border of every layer. Ranges that leave the text or split a character are ignored.
pub fn pieces(text: &str, layers: &[Layer]) -> Vec<Piece> {
    let fits = |layer: &&Layer| {
        layer.start < layer.end
            && layer.end <= text.len()
            && text.is_char_boundary(layer.start)
            && text.is_char_boundary(layer.end)
    };
    let layers: Vec<Layer> = layers.iter().filter(fits).copied().collect();
    let mut borders: Vec<usize> = layers.iter().flat_map(|layer| [layer.start, layer.end]).collect();
    borders.extend([0, text.len()]);
    borders.sort_unstable();
    borders.dedup();

    let mut opening: Vec<usize> = (0..layers.len()).collect();
    opening.sort_by_key(|&index| layers[index].start);
    let mut next = opening.into_iter().peekable();
    let mut open: Vec<usize> = Vec::new();
    let mut pieces: Vec<Piece> = Vec::with_capacity(borders.len());
    for pair in borders.windows(2) {
        let (start, end) = (pair[0], pair[1]);
        open.retain(|&index| layers[index].end > start);
        while let Some(index) = next.next_if(|&index| layers[index].start <= start) {
            open.push(index);
        }
        open.sort_unstable();
        let mut marks = Marks::default();
        for &index in &open {
            match layers[index].mark {
                Mark::Vertex(vertex) => marks.vertex = Some(vertex),
                Mark::Sentence(sentence) => marks.sentence = Some(sentence),
                Mark::Evidence(weight) => marks.evidence = weight,
                Mark::SentenceEvidence(weight) => marks.sentence_evidence = weight,
            }
        }
        match pieces.last_mut() {
            Some(last) if last.marks == marks => last.end = end,
            _ => pieces.push(Piece { start, end, marks }),
        }
    }
    pieces
}

/// The pieces as HTML: neighbours of one class share a span, unmarked text has none. One string is parsed by the
/// browser many times faster than spans are made one by one, and this happens whenever a tag is pointed at.
pub fn html(text: &str, pieces: &[Piece], class: impl Fn(&Marks) -> String) -> String {
    let mut html = String::with_capacity(text.len() + pieces.len() * 32);
    let mut open = String::new();
    for piece in pieces {
        let class = class(&piece.marks);
        if class != open {
            if !open.is_empty() {
                html.push_str("</span>");
            }
            if !class.is_empty() {
                html.push_str("<span class=\"");
                escape(&class, &mut html);
                html.push_str("\">");
            }
            open = class;
        }
        escape(&text[piece.start..piece.end], &mut html);
    }
    if !open.is_empty() {
        html.push_str("</span>");
    }
    html
}

/// Nothing in a text may become markup.
fn escape(text: &str, html: &mut String) {
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            other => html.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn neighbours_of_one_class_share_a_span_and_text_never_becomes_markup() {
        let text = "a <b> \"c\" & d";
        let layers = [
            Layer {
                start: 0,
                end: 3,
                mark: Mark::Vertex(1),
            },
            Layer {
                start: 3,
                end: 5,
                mark: Mark::Vertex(2),
            },
        ];
        let shown = html(text, &pieces(text, &layers), |marks| {
            marks.vertex.map_or_else(String::new, |_| "keyword".to_owned())
        });
        assert_eq!(
            shown,
            "<span class=\"keyword\">a &lt;b&gt;</span> &quot;c&quot; &amp; d"
        );
    }

    #[test]
    fn overlapping_marks_share_the_piece_in_which_they_overlap() {
        let text = "Crude oil prices rose.";
        let layers = [
            Layer {
                start: 0,
                end: 22,
                mark: Mark::Sentence(0),
            },
            Layer {
                start: 0,
                end: 9,
                mark: Mark::Vertex(3),
            },
            Layer {
                start: 6,
                end: 16,
                mark: Mark::Evidence(0.5),
            },
        ];
        let cut = pieces(text, &layers);
        let words: Vec<&str> = cut.iter().map(|piece| &text[piece.start..piece.end]).collect();
        assert_eq!(words, ["Crude ", "oil", " prices", " rose."]);
        assert_eq!(cut[1].marks.vertex, Some(3));
        assert_eq!(cut[1].marks.evidence, 0.5);
        assert_eq!(
            cut[3].marks,
            Marks {
                sentence: Some(0),
                ..Marks::default()
            }
        );
    }

    proptest! {
        #[test]
        fn the_pieces_put_together_are_the_text(
            text in "[a-zé€ ]{0,40}",
            ranges in proptest::collection::vec((0usize..60, 0usize..60, 0usize..4), 0..12),
        ) {
            let layers: Vec<Layer> = ranges
                .into_iter()
                .map(|(start, end, vertex)| Layer { start, end, mark: Mark::Vertex(vertex) })
                .collect();
            let together: String =
                pieces(&text, &layers).iter().map(|piece| &text[piece.start..piece.end]).collect();
            prop_assert_eq!(together, text);
        }
    }
}
