//! Asks the linker to keep relocations: `cargo xtask web` needs them to split views off the page's module.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family.contains("wasm")) {
        println!("cargo::rustc-link-arg-bins=--emit-relocs");
    }
}
