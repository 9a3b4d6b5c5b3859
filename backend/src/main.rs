//! The `gnnxml` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    gnnxml_backend::cli::main()
}
