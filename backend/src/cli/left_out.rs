//! What became of documents that are not as they should be, told on standard error.

use crate::data::CorpusReader;

/// Says which bad records a reader that came to its end left out, and whether it kept documents whose ids repeat.
pub(super) fn report_left_out(reader: &CorpusReader) {
    if let Some((first, count)) = reader.repeated() {
        tell!("{count} documents repeat the id of another and were kept: {first}");
    }
    if reader.skipped() > 0 {
        tell!("{} bad records left out:", reader.skipped());
        for complaint in reader.complaints() {
            tell!("  {complaint}");
        }
        let untold = reader.skipped() - reader.complaints().len();
        if untold > 0 {
            tell!("  and {untold} more");
        }
    }
}
