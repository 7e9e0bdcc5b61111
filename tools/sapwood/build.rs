//! Gives `sapwood --version` the commit that a release build was made from.
//!
//! Only release builds say it: a commit then has one program linked again, and the tests' programs
//! not at all. A release build of sources without git says that it has none.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let version = env!("CARGO_PKG_VERSION");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let version = if is_release {
        format!("{version} ({})", commit().as_deref().unwrap_or("no commit"))
    } else {
        version.to_owned()
    };
    println!("cargo:rustc-env=SAPWOOD_VERSION={version}");
}

/// The commit of the checkout that this package lies in. What a source archive lies in may be the
/// checkout of another project.
fn commit() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    if !root.join(".git").exists() {
        return None;
    }
    // Each of these changes when another commit is checked out; the second is not kept everywhere.
    for file in ["HEAD", "logs/HEAD"] {
        let path = root.join(git(root, &["rev-parse", "--git-path", file])?);
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    git(root, &["rev-parse", "--short=12", "HEAD"])
}

/// What git prints, without the end of the line.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let done = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    let text = String::from_utf8(done.stdout).ok()?;
    done.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
}
