//! What must be on the machine: found or installed, with the reason said once.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::steps;

/// A Debian package, how to see that it is there, and why it is wanted.
struct Package {
    name: &'static str,
    /// Any of these paths proves it installed.
    proof: &'static [&'static str],
    reason: &'static str,
}

const BROWSER: &[Package] = &[
    Package {
        name: "chromium",
        proof: &["/usr/bin/chromium"],
        reason: "the browser tests run in it",
    },
    Package {
        name: "chromium-driver",
        proof: &["/usr/bin/chromedriver"],
        reason: "drives that browser",
    },
    Package {
        name: "mesa-vulkan-drivers",
        proof: &[
            "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json",
            "/usr/share/vulkan/icd.d/lvp_icd.json",
        ],
        reason: "runs the compute shaders on the CPU where there is no GPU",
    },
    Package {
        name: "libvulkan1",
        proof: &[
            "/usr/lib/x86_64-linux-gnu/libvulkan.so.1",
            "/usr/lib/aarch64-linux-gnu/libvulkan.so.1",
        ],
        reason: "loads that driver",
    },
];

const NODE: &[Package] = &[
    Package {
        name: "nodejs",
        proof: &["/usr/bin/node", "/usr/local/bin/node"],
        reason: "runs the JS package's test",
    },
    Package {
        name: "npm",
        proof: &["/usr/bin/npm", "/usr/local/bin/npm"],
        reason: "fetches the demo corpus and axe-core",
    },
];

/// All that the tests need.
pub(crate) fn everything() -> Result<()> {
    compiler()?;
    wasm_target()?;
    packages(BROWSER)?;
    packages(NODE)
}

/// All that the demo needs.
pub(crate) fn for_demo() -> Result<()> {
    compiler()?;
    wasm_target()?;
    packages(NODE)
}

/// A Python with the foreign clients that the server is tested against, in the target directory; `None` where
/// there is no Python or no network.
pub(crate) fn python_clients() -> Option<std::path::PathBuf> {
    let folder = steps::target_dir().join("python");
    let python = folder.join("bin").join("python");
    let ready = folder.join("ready");
    if !ready.exists() {
        println!(
            "Installing annif-client and schemathesis into target/python: the server is tested with them."
        );
        steps::run(Command::new("python3").args(["-m", "venv"]).arg(&folder)).ok()?;
        let pip = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "annif-client==0.5.0",
            "schemathesis",
        ];
        steps::run(Command::new(&python).args(pip)).ok()?;
        std::fs::write(&ready, "").ok()?;
    }
    Some(python)
}

/// SQLite is compiled from source.
fn compiler() -> Result<()> {
    packages(&[Package {
        name: "gcc",
        proof: &["/usr/bin/cc", "/usr/bin/gcc"],
        reason: "compiles SQLite",
    }])
}

/// The page compiles to wasm32.
pub(crate) fn wasm_target() -> Result<()> {
    let installed = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", "wasm32-unknown-unknown"])
        .current_dir(steps::root())
        .output()
        .is_ok_and(|out| {
            std::path::Path::new(String::from_utf8_lossy(&out.stdout).trim())
                .read_dir()
                .is_ok_and(|mut files| files.next().is_some())
        });
    if installed {
        return Ok(());
    }
    if !steps::found("rustup") {
        bail!(
            "the Rust target wasm32-unknown-unknown is missing and rustup is not on PATH: install the target for rustc 1.95.0"
        );
    }
    println!("Installing the Rust target wasm32-unknown-unknown: the page compiles to it.");
    steps::run(Command::new("rustup").args(["target", "add", "wasm32-unknown-unknown"]))
}

fn packages(wanted: &[Package]) -> Result<()> {
    let missing: Vec<&Package> = wanted
        .iter()
        .filter(|package| {
            !package
                .proof
                .iter()
                .any(|path| std::path::Path::new(path).exists())
        })
        .filter(|package| !steps::found(package.name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    for package in &missing {
        println!(
            "Missing: the Debian package `{}`: {}.",
            package.name, package.reason
        );
    }
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    if !steps::found("apt-get") {
        bail!(
            "apt-get is not here: please install {} by your system's own means",
            names.join(", ")
        );
    }
    let Some(mut apt) = as_root("apt-get") else {
        bail!(
            "installing needs root and sudo is not here: please run `apt-get install {}` as root",
            names.join(" ")
        );
    };
    println!("Installing {} with apt-get.", names.join(", "));
    steps::run(apt.args(["update", "-qq"]))?;
    let mut apt = as_root("apt-get").expect("was there a moment ago");
    steps::run(
        apt.env("DEBIAN_FRONTEND", "noninteractive")
            .args(["install", "-y", "-qq", "--no-install-recommends"])
            .args(&names),
    )
}

/// The command as root: as it is when we are root, through sudo otherwise.
fn as_root(program: &str) -> Option<Command> {
    let is_root = Command::new("id")
        .arg("-u")
        .stderr(Stdio::null())
        .output()
        .is_ok_and(|out| String::from_utf8_lossy(&out.stdout).trim() == "0");
    if is_root {
        return Some(Command::new(program));
    }
    steps::found("sudo").then(|| {
        let mut sudo = Command::new("sudo");
        sudo.arg(program);
        sudo
    })
}
