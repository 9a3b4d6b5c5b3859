//! Writes the English stop words into a file of their own, so that a build of English alone links no other language's.

use std::fmt::Write as _;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let words = stop_words::lookup("en").expect("the crate holds English");
    let list = words.iter().fold(String::new(), |mut list, word| {
        let _ = write!(list, "{word:?}, ");
        list
    });
    let folder = std::env::var_os("OUT_DIR").expect("cargo names the folder");
    let file = std::path::Path::new(&folder).join("english_stop_words.rs");
    std::fs::write(file, format!("&[{list}]")).expect("the build folder takes files");
}
