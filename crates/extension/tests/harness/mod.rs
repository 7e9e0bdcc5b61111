//! Compiles files of filters, and hands waves to the filters in them.
#![allow(dead_code)]

use std::path::{Path, PathBuf};

use sapwood_extension::with_extensions;
use sapwood_filter::{Emitter, Filter, FilterError, Registry, WaveRef};
use sapwood_packet::{IntoValues, Packet, RankSet, Values, ValuesRef};

/// A shared object in a folder that goes with it.
pub struct Library {
    folder: tempfile::TempDir,
}

impl Library {
    /// Compiles a source of this crate.
    pub fn build(source: &str, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let compiler = std::env::var("CC").unwrap_or_else(|_| String::from("cc"));
        let status = std::process::Command::new(compiler)
            .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"])
            .args(flags)
            .arg("-I")
            .arg(root.join("../../bindings/c/include"))
            .arg("-o")
            .arg(folder.path().join("libtest.so"))
            .arg(root.join(source))
            .status()
            .expect("a C compiler");
        assert!(status.success(), "{source} does not compile");
        Self { folder }
    }

    /// Compiles the program of that name in a page of the documentation.
    pub fn of_page(page: &str, program: &str) -> Self {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
        let page = std::fs::read_to_string(page).expect("a page");
        let (_, rest) = page.split_once(&format!("```c {program}\n")).expect("a program");
        let (text, _) = rest.split_once("```").expect("its end");
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join(program);
        std::fs::write(&source, text).expect("a file");
        Self::build(&source.display().to_string(), &["-Wpedantic"])
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("libtest.so")
    }

    pub fn filter(&self, name: &str) -> String {
        format!("native:{}#{name}", self.path().display())
    }
}

pub fn make(name: &str, parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    with_extensions(Registry::empty()).make(name, parameters)
}

pub fn packet_of(values: impl IntoValues) -> Packet {
    Packet::new(3, 100, values)
}

pub fn wave_of<T: sapwood_packet::Element, const N: usize>(numbers: [T; N]) -> Packet {
    packet_of(Values::new().array(&numbers))
}

/// Hands a filter a wave at the process of rank 12.
pub fn given(
    filter: &mut dyn Filter,
    wave: u64,
    packets: &[Packet],
) -> Result<Vec<Values>, FilterError> {
    let lent: Vec<_> = packets.iter().map(Packet::as_ref).collect();
    let contributors = RankSet::range(0, packets.len() as u32 - 1);
    let wave = WaveRef {
        stream: 3,
        wave,
        packets: &lent,
        contributors: contributors.as_ref(),
        rank: 12,
        is_root: false,
        children: packets.len() as u32,
        back_ends: packets.len() as u32,
    };
    let mut out = Emitter::new();
    filter.transform(&wave, &mut out)?;
    Ok(out.emissions().map(|(_, values)| values.to_values()).collect())
}
