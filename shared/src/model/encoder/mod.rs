//! Sentence encoders that run in the page as well as on the server, plain Rust and SIMD.
//!
//! They never load anything: whoever has the bytes builds one. Nor do they start threads; the server spreads
//! batches over its cores. Start reading at [`SentenceEncoder`], then [`Lsa`], the one that needs no weights.

pub mod bert;
mod lsa;
mod static_words;
mod table;

pub use lsa::Lsa;
pub use static_words::StaticEncoder;
pub use table::{TableError, VectorTable};

/// Turns sentences into vectors of one width.
pub trait SentenceEncoder {
    /// Width of a sentence vector.
    fn dims(&self) -> usize;

    /// Row-major `sentences.len() × dims()`, each row of length one, or all zero where a sentence has no known
    /// token. A sentence's vector does not depend on the other sentences.
    fn encode(&self, sentences: &[&str]) -> Vec<f32>;

    /// The transformer behind it, for a processor that computes transformers itself.
    fn transformer(&self) -> Option<&bert::BertEncoder> {
        None
    }
}

/// Divides a vector by its Euclidean length; a zero vector stays zero.
pub fn l2_normalise(vector: &mut [f32]) {
    let squares: f64 = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
    if squares > 0.0 {
        let inverse = (1.0 / squares.sqrt()) as f32;
        for x in vector {
            *x *= inverse;
        }
    }
}
