//! Writes tables that are larger in the crates they come from: English stop words, and what Unicode says of characters.

#[path = "build_tables/unicode.rs"]
mod unicode;

use std::fmt::Write as _;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build_tables");
    let folder = std::env::var_os("OUT_DIR").expect("cargo names the folder");
    let keep = |name: &str, bytes: &[u8]| {
        std::fs::write(Path::new(&folder).join(name), bytes).expect("the build folder takes files");
    };
    let words = stop_words::lookup("en").expect("the crate holds English");
    let list = words.iter().fold(String::new(), |mut list, word| {
        let _ = write!(list, "{word:?}, ");
        list
    });
    keep("english_stop_words.rs", format!("&[{list}]").as_bytes());
    let (gaps, shapes, parts) = unicode::decompositions();
    keep("decomposition_gaps", &gaps);
    keep("decomposition_shapes", &shapes);
    keep("decomposition_parts", parts.as_bytes());
    keep("combining_classes", &unicode::classes());
    keep("marks", &unicode::marks());
}
