//! The header is what the sources say.
//!
//! After a change of the interface, `SAPWOOD_WRITE_HEADER=1 cargo test -p sapwood-c --test header`
//! writes the header anew.

#[path = "header/rules.rs"]
mod rules;

use std::fs;
use std::path::Path;

use cbindgen::{Builder, Config, DocumentationStyle, Language, SortKey, Style};

/// The modules in the order of the header.
const MODULES: [&str; 14] = [
    "error",
    "format",
    "topology",
    "communicator",
    "options",
    "network",
    "stream",
    "answer",
    "packet",
    "sketch",
    "estimate",
    "event",
    "back_end",
    "serve",
];

/// Enumerations that no function takes or gives by name, because C gives them as int.
const CONSTANTS: [&str; 12] = [
    "sapwood_error_code_t",
    "sapwood_type_t",
    "sapwood_shape_t",
    "sapwood_transport_t",
    "sapwood_encryption_t",
    "sapwood_recovery_t",
    "sapwood_role_t",
    "sapwood_wave_t",
    "sapwood_policy_t",
    "sapwood_event_kind_t",
    "sapwood_cause_t",
    "sapwood_sketch_kind_t",
];

const COLUMNS_MAX: usize = 100;

const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

fn generated() -> String {
    let sources = Path::new(PACKAGE).join("src");
    let mut config = Config {
        language: Language::C,
        cpp_compat: true,
        documentation_style: DocumentationStyle::Doxy,
        include_guard: Some("SAPWOOD_H".to_owned()),
        no_includes: true,
        sys_includes: ["stdbool.h", "stddef.h", "stdint.h"].map(str::to_owned).to_vec(),
        usize_is_size_t: true,
        style: Style::Type,
        line_length: COLUMNS_MAX,
        tab_width: 4,
        header: Some(include_str!("header/opening.txt").trim_end().to_owned()),
        after_includes: Some(include_str!("header/init.txt").trim_end().to_owned()),
        ..Config::default()
    };
    config.function.sort_by = Some(SortKey::None);
    config.export.include = CONSTANTS.map(str::to_owned).to_vec();
    let mut builder = Builder::new().with_config(config);
    for module in MODULES.iter().chain(&["varargs"]) {
        builder = builder.with_src(sources.join(format!("{module}.rs")));
    }
    let mut bytes = Vec::new();
    builder.generate().expect("the sources are a C interface").write(&mut bytes);
    let plain = without_safety(&String::from_utf8(bytes).expect("a header is text"));
    let documented = rules::document(&plain, include_str!("header/errors.txt"));
    compact(&documented.unwrap_or_else(|fault| panic!("{fault}")))
}

/// What Rust documents as `# Safety` is, for C, the opening of the header.
fn without_safety(header: &str) -> String {
    let mut kept = Vec::new();
    let mut is_inside = false;
    for line in header.lines() {
        if line.trim() == "* # Safety" {
            is_inside = true;
            if kept.last().is_some_and(|last: &&str| last.trim() == "*") {
                kept.pop();
            }
        }
        is_inside &= line.trim() != "*/";
        if !is_inside {
            kept.push(line);
        }
    }
    kept.join("\n") + "\n"
}

/// Puts comments of one line on one line.
fn compact(header: &str) -> String {
    let mut kept: Vec<String> = Vec::new();
    for line in header.lines() {
        let indent = &line[..line.len() - line.trim_start().len()];
        if let ([.., opening, only], "*/") = (kept.as_slice(), line.trim())
            && opening.trim() == "/**"
            && let Some(text) = only.trim().strip_prefix("* ")
        {
            // The closing line is indented by one column more than the opening.
            let one = format!("{}/** {text} */", &indent[1..]);
            if one.len() <= COLUMNS_MAX {
                kept.truncate(kept.len() - 2);
                kept.push(one);
                continue;
            }
        }
        kept.push(line.to_owned());
    }
    kept.join("\n") + "\n"
}

#[test]
fn the_header_is_what_the_sources_say() {
    let path = Path::new(PACKAGE).join("include/sapwood.h");
    let wanted = generated();
    if std::env::var_os("SAPWOOD_WRITE_HEADER").is_some() {
        fs::write(&path, &wanted).expect("the header can be written");
    }
    let held = fs::read_to_string(&path).expect("the header is there");
    let first = held.lines().zip(wanted.lines()).find(|(held, wanted)| held != wanted);
    assert!(
        held == wanted,
        "include/sapwood.h differs from the sources, first in {first:?}; write it with \
         SAPWOOD_WRITE_HEADER=1 cargo test -p sapwood-c --test header"
    );
}

#[test]
fn the_header_has_the_version_of_the_library() {
    let header = fs::read_to_string(Path::new(PACKAGE).join("include/sapwood.h")).expect("a file");
    let parts = ["MAJOR", "MINOR", "PATCH"].map(|part| {
        let name = format!("#define SAPWOOD_VERSION_{part} ");
        let line = header.lines().find_map(|line| line.strip_prefix(&name));
        line.expect("a number").to_owned()
    });
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(version.split('-').next(), Some(parts.join(".").as_str()));
}
