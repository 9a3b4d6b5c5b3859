//! `cargo xtask`: set up, build the page, run the demo, run every test.
//!
//! It never does in silence what changes the machine: each install is announced with its reason.
//! Start reading at [`test::run`], the list of everything that must hold.

mod bind;
mod browser;
mod compress;
mod demo;
mod http;
mod licences;
mod package;
mod peers;
mod setup;
mod steps;
mod test;
mod web;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  demo [--check] [--addr A]  set up, build, fetch the demo corpus, train the fast preset, serve it
                             (--check: see that the page and the API answer, then exit)
  test                       set up, then every test: unit, property, gradients, wasm, server, crash, browser
  web                        build the page into dist/, and the tagger's package into target/package/
  bench ROOM [ARGS…]         measure one room with a release build (gnnxml bench ROOM ARGS…)
  bench peers [ARGS…]        ours beside omikuji and PECOS: --train FILE [--ids FILE] --test FILE [--presets fast,best]
  bench browser [ARGS…]      the tagger in headless Chromium, time and bytes: --texts FILE.jsonl (--model DIR | --bundle DIR)…
                             [--runs 50]; with --encoder DIR (`gnnxml encoder fetch minilm`) and --python PYTHON (with onnx,
                             onnxruntime and safetensors) also that encoder beside onnxruntime-web
  fmt                        format every crate
  lint                       formatting, clippy, licences (cargo-deny where it is installed)
  check-cuda                 type-check the feature `cuda` (needs nvcc on PATH)
  setup                      only install what is missing";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rest = args.get(1..).unwrap_or_default();
    let done = match args.first().map(String::as_str) {
        Some("demo") => demo::run(rest),
        Some("test") => test::run(),
        Some("web") => setup::wasm_target().and_then(|()| web(rest)),
        Some("bench") => bench(rest),
        Some("fmt") => steps::cargo(&["fmt", "--all"]),
        Some("lint") => test::lint(),
        Some("check-cuda") => check_cuda(),
        Some("setup") => setup::everything(),
        Some("help" | "--help" | "-h") | None => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Some(other) => {
            eprintln!("xtask: no command `{other}`\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// `--dev` compiles quickly and large, for work on the page itself.
fn web(args: &[String]) -> anyhow::Result<()> {
    let release = !args.iter().any(|argument| argument == "--dev");
    println!("{}", web::build(release)?.display());
    Ok(())
}

fn bench(args: &[String]) -> anyhow::Result<()> {
    match args.split_first().map(|(room, rest)| (room.as_str(), rest)) {
        Some(("peers", rest)) => return peers::run(rest),
        Some(("browser", rest)) => return browser::run(rest),
        _ => (),
    }
    let mut command = vec![
        "run",
        "--release",
        "--quiet",
        "-p",
        "gnnxml-backend",
        "--bin",
        "gnnxml",
        "--",
        "bench",
    ];
    command.extend(args.iter().map(String::as_str));
    steps::cargo(&command)
}

/// Needs a CUDA compiler, not a GPU: candle's kernels are compiled, nothing is linked or run.
fn check_cuda() -> anyhow::Result<()> {
    anyhow::ensure!(
        steps::found("nvcc"),
        "`nvcc` is not on PATH: install a CUDA toolkit (or the PyPI packages nvidia-cuda-nvcc, nvidia-cuda-crt, \
         nvidia-cuda-runtime, nvidia-cuda-cccl and nvidia-nvvm side by side) and set CUDA_HOME"
    );
    steps::cargo(&["check", "-p", "gnnxml-backend", "--features", "cuda"])
}
