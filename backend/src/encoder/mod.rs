//! Sentence encoders: one trait, from no weights at all to any transformer.

/// Turns sentences into vectors.
pub trait Encoder: Send + Sync {
    /// The name in the configuration: `lsa`, `static`, `bert`, …
    fn name(&self) -> &str;

    /// Width of a sentence vector.
    fn dims(&self) -> usize;

    /// Changes whenever the vectors would: the embedding cache's key.
    fn fingerprint(&self) -> String;

    /// Row-major `sentences.len() × dims()`, each row L2-normalised (all zero for a sentence without a token).
    fn encode(&self, sentences: &[&str]) -> anyhow::Result<Vec<f32>>;
}
