//! What a step's programs find in their environment: the caller's, without what would change
//! how an interpreter, an MPI or the product itself behaves.

use std::process::Command;

/// Variables whose names begin so are taken out, here and by `bindings/python/run-tests`, which
/// reads both lists, one name on a line. TMPDIR, PATH, HOME and what leads to packages stay. What
/// cargo tells of the program that it runs would have ring, and all that uses it, built anew by the
/// next cargo without it.
const PREFIXES: [&str; 22] = [
    "CARGO_MANIFEST_",
    "CARGO_PKG_",
    "CLUSTERSHELL_",
    "FLUX_",
    "HYDRA_",
    "I_MPI_",
    "LC_",
    "MALLOC_",
    "MPICH_",
    "MPIEXEC_",
    "OMPI_",
    "OPAL_",
    "PALS_",
    "PBS_",
    "PMIX_",
    "PMI_",
    "PROPTEST_",
    "PRTE_",
    "PYTEST_",
    "PYTHON",
    "SAPWOOD_",
    "SLURM_",
];
/// And these. An outer make hands on its flags and jobs, which are not the step's; in the folder of
/// a user's runtime files are that user's own trees.
const NAMES: [&str; 21] = [
    "COLUMNS",
    "JOB_COMPLETION_INDEX",
    "LANG",
    "LANGUAGE",
    "LD_PRELOAD",
    "LINES",
    "MAKEFLAGS",
    "MAKELEVEL",
    "MAKEOVERRIDES",
    "MFLAGS",
    "NO_COLOR",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "RUST_LOG",
    "RUST_MIN_STACK",
    "RUST_TEST_NOCAPTURE",
    "RUST_TEST_THREADS",
    "RUST_TEST_TIME_UNIT",
    "TZ",
    "WCOLL",
    "XDG_RUNTIME_DIR",
];

/// The seed of all property tests, which would take one from the system: what passes once passes
/// again on the same commit. `cargo xtask hunt` gives them others.
pub const PROPERTY_SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "20260229");

/// Takes them out of what `command` inherits, and has property tests draw the same values always.
pub fn clean(command: &mut Command) {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(|name| is_taken_out(name)) {
        command.env_remove(name);
    }
    command.env(PROPERTY_SEED.0, PROPERTY_SEED.1);
}

fn is_taken_out(name: &str) -> bool {
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_a_test_is_taken_out_and_what_leads_to_programs_stays() {
        for name in [
            "CARGO_PKG_NAME",
            "PYTHONUNBUFFERED",
            "OMPI_MCA_btl",
            "LC_ALL",
            "RUST_BACKTRACE",
            "RUST_TEST_THREADS",
            "SAPWOOD_LOG",
            "PBS_NODEFILE",
            "WCOLL",
            "XDG_RUNTIME_DIR",
        ] {
            assert!(is_taken_out(name), "{name}");
        }
        for name in
            ["PATH", "HOME", "TMPDIR", "CARGO_HOME", "CARGO_TARGET_DIR", "RUSTUP_HOME", "CI"]
        {
            assert!(!is_taken_out(name), "{name}");
        }
    }

    #[test]
    fn the_tests_of_python_read_these_lists() {
        let script = crate::root().join("bindings/python/run-tests");
        let script = std::fs::read_to_string(script).unwrap();
        let (_, rest) = script.split_once("# What a user has set").unwrap();
        let (part, _) = rest.split_once("mkdir ").unwrap();
        let mut command = Command::new("sh");
        command.env_clear().current_dir(crate::root());
        command.arg("-euc").arg(format!("# {part}\nexec env"));
        let prefixed = PREFIXES.map(|prefix| format!("{prefix}X"));
        let gone = NAMES.into_iter().chain(prefixed.iter().map(String::as_str));
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", "/");
        command.envs(gone.chain(["SAPWOOD_TESTS_ORDER", "TZDIR"]).map(|name| (name, "1")));
        // The loader would complain of a library that is not there.
        command.env("LD_PRELOAD", "");
        let printed = command.output().unwrap().stdout;
        let printed = String::from_utf8(printed).unwrap();
        let mut left: Vec<_> =
            printed.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        left.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
        left.sort_unstable();
        assert_eq!(left, ["HOME", "PATH", "SAPWOOD_TESTS_ORDER", "TZDIR"]);
    }
}
