//! From registers and a copied stack to the names of the functions that are open.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use framehop::{CacheNative, FrameAddress, MayAllocateDuringUnwind, Unwinder, UnwinderNative};

use crate::module::{Bytes, Module, Sections};
use crate::process::{Mapping, folder, mappings};
use crate::stop::{Copied, memory};

/// Frames of one stack that are followed, at most.
const FRAMES_MAX: usize = 4096;
/// A file in memory that is larger is no table of the kernel's functions.
const KERNEL_BYTES_MAX: u64 = 1 << 20;

type OwnUnwinder = UnwinderNative<Bytes, MayAllocateDuringUnwind>;

/// Files that processes have mapped, each read once.
#[derive(Default)]
pub(crate) struct Modules {
    read: BTreeMap<String, Option<Arc<Module>>>,
}

/// The address space of one process.
pub(crate) struct Space {
    text: String,
    mappings: Vec<Mapping>,
    unwinder: OwnUnwinder,
    modules: Vec<Placed>,
}

/// A module where it lies in a process.
struct Placed {
    begin: u64,
    end: u64,
    /// What is to be added to an address of its file.
    bias: u64,
    module: Arc<Module>,
}

/// One open function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The names for people, the outermost first.
    pub(crate) names: Vec<String>,
    /// The symbol as the linker knows it; empty if there is none.
    pub(crate) symbol: String,
    /// Whether it is of the file that runs Python programs.
    #[cfg(feature = "python")]
    pub(crate) is_python: bool,
}

impl Modules {
    fn get(&mut self, process: i32, file: &str) -> Option<Arc<Module>> {
        if let Some(known) = self.read.get(file) {
            return known.clone();
        }
        // As the process sees it, which may be in a container.
        let inside: PathBuf = folder(process).join("root").join(file.trim_start_matches('/'));
        let module = Module::open(&inside, file).or_else(|| Module::open(Path::new(file), file));
        let module = module.map(Arc::new);
        self.read.insert(file.to_owned(), module.clone());
        module
    }
}

impl Space {
    /// What a process has mapped now. The space that was read before is kept where it still holds.
    pub(crate) fn of(process: i32, before: Option<Self>, modules: &mut Modules) -> Self {
        let (text, mappings) = mappings(process);
        if let Some(before) = before.filter(|before| before.text == text) {
            return before;
        }
        let mut space =
            Self { text, mappings, unwinder: UnwinderNative::new(), modules: Vec::new() };
        for mapping in &space.mappings {
            let module = match mapping.file.as_str() {
                "[vdso]" => kernel_functions(process, mapping),
                file if mapping.is_code && file.starts_with('/') => modules.get(process, file),
                _ => None,
            };
            let Some(module) = module else { continue };
            let Some(address) = module.address_at(mapping.offset) else { continue };
            let (begin, end) = (mapping.begin, mapping.end);
            let bias = begin.wrapping_sub(address);
            let name = mapping.file.clone();
            let sections = Sections(&module);
            space.unwinder.add_module(framehop::Module::new(name, begin..end, bias, sections));
            space.modules.push(Placed { begin, end, bias, module });
        }
        space
    }

    pub(crate) fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// Whether the process runs a Python program.
    #[cfg(feature = "python")]
    pub(crate) fn is_python(&self) -> bool {
        self.modules.iter().any(|placed| placed.module.is_python)
    }

    /// The open functions, the outermost first.
    pub(crate) fn frames(&self, copied: &Copied) -> Vec<Frame> {
        let mut frames = Vec::new();
        let mut cache = CacheNative::<MayAllocateDuringUnwind>::new();
        let begin = copied.registers.stack;
        let mut read = |address: u64| {
            let at = usize::try_from(address.checked_sub(begin).ok_or(())?).map_err(|_| ())?;
            let word = copied.stack.get(at..).and_then(<[u8]>::first_chunk).ok_or(())?;
            Ok(u64::from_le_bytes(*word))
        };
        let registers = &copied.registers;
        let mut open =
            self.unwinder.iter_frames(registers.instruction, own(registers), &mut cache, &mut read);
        while frames.len() < FRAMES_MAX
            && let Ok(Some(frame)) = open.next()
        {
            frames.push(self.frame(frame));
        }
        frames.reverse();
        frames
    }

    fn frame(&self, frame: FrameAddress) -> Frame {
        // Of a caller, the call counts and not what comes after it.
        let address = frame.address_for_lookup();
        let placed = self.modules.iter().find(|one| (one.begin..one.end).contains(&address));
        match placed {
            Some(Placed { bias, module, .. }) => {
                let address = address.wrapping_sub(*bias);
                let symbol = module.symbol(address).unwrap_or_default().to_owned();
                Frame {
                    names: module.names(address),
                    symbol,
                    #[cfg(feature = "python")]
                    is_python: module.is_python,
                }
            }
            // Functions that were made while the program runs have no names.
            None => Frame { names: vec!["unknown code".to_owned()], ..Frame::default() },
        }
    }
}

/// The functions that the kernel puts into each process.
fn kernel_functions(process: i32, mapping: &Mapping) -> Option<Arc<Module>> {
    let length = usize::try_from((mapping.end - mapping.begin).min(KERNEL_BYTES_MAX)).ok()?;
    Module::of_memory(&memory(process, mapping.begin, length), &mapping.file).map(Arc::new)
}

#[cfg(target_arch = "x86_64")]
fn own(registers: &crate::stop::Registers) -> framehop::UnwindRegsNative {
    framehop::x86_64::UnwindRegsX86_64::new(registers.instruction, registers.stack, registers.frame)
}

#[cfg(target_arch = "aarch64")]
fn own(registers: &crate::stop::Registers) -> framehop::UnwindRegsNative {
    framehop::aarch64::UnwindRegsAarch64::new(
        registers.instruction,
        registers.stack,
        registers.frame,
    )
}
