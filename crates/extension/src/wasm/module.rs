//! A file in WebAssembly, compiled once for all filters that are made of it.

use wasmi::{Engine, Module};

use super::instance::WasmInstance;
use super::layout::{FILTER_BYTES, FilterEntry, LIBRARY_BYTES, u32_at};
use crate::source::find_in;
use crate::{ExtensionError, INTERFACE_VERSION};

/// Most filters in one file.
const FILTERS_MAX: u32 = 1024;

/// Longest name of a filter, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// The file, and the filters that it says it has.
#[derive(Debug)]
pub(crate) struct WasmModule {
    file: String,
    module: Module,
    filters: Vec<(String, FilterEntry)>,
}

impl WasmModule {
    /// Compiles a file, and asks an instance of it which filters there are.
    pub(super) fn compile(
        engine: &Engine,
        file: &str,
        bytes: &[u8],
    ) -> Result<Self, ExtensionError> {
        let module = Module::new(engine, bytes).map_err(|error| ExtensionError::Load {
            file: file.to_string(),
            reason: format!("it is no WebAssembly that can be used: {error}"),
        })?;
        let mut compiled = Self { file: file.to_string(), module, filters: Vec::new() };
        let mut instance = WasmInstance::new(&compiled)?;
        compiled.filters = compiled.read_filters(&mut instance)?;
        Ok(compiled)
    }

    pub(super) fn file(&self) -> &str {
        &self.file
    }

    pub(super) fn module(&self) -> &Module {
        &self.module
    }

    /// The filter of a name, or with an empty one the only filter.
    pub(super) fn find(&self, name: &str) -> Result<(&str, FilterEntry), ExtensionError> {
        find_in(&self.filters, &self.file, name)
    }

    fn read_filters(
        &self,
        instance: &mut WasmInstance,
    ) -> Result<Vec<(String, FilterEntry)>, ExtensionError> {
        let wrong = |reason: &str| ExtensionError::Library {
            file: self.file.clone(),
            reason: reason.to_string(),
        };
        let at = instance.library(&self.file)? as usize;
        let memory = instance.memory();
        let outside = || wrong("its sapwood_filter_v1 leads out of its memory");
        let library = memory.get(at..).and_then(|rest| rest.get(..LIBRARY_BYTES));
        let library = library.ok_or_else(outside)?;
        let version = u32_at(library, 0);
        if version != INTERFACE_VERSION {
            return Err(ExtensionError::Version { file: self.file.clone(), version });
        }
        if u32_at(library, 4) as usize != FILTER_BYTES {
            return Err(wrong("its filter_bytes is not sizeof(sapwood_filter_t)"));
        }
        let count = u32_at(library, 8);
        if !(1..=FILTERS_MAX).contains(&count) {
            return Err(wrong("it states no filters, or too many"));
        }
        let entries = memory.get(u32_at(library, 12) as usize..).ok_or_else(outside)?;
        let entries = entries.get(..count as usize * FILTER_BYTES).ok_or_else(outside)?;
        let mut filters = Vec::with_capacity(count as usize);
        for entry in entries.chunks_exact(FILTER_BYTES) {
            let name = memory.get(u32_at(entry, 0) as usize..).ok_or_else(outside)?;
            let end = name.iter().take(NAME_BYTES_MAX).position(|&byte| byte == 0);
            let end = end.ok_or_else(|| wrong("one of its filters has no name"))?;
            let name = String::from_utf8_lossy(&name[..end]).into_owned();
            filters.push((name, FilterEntry::read(entry)));
        }
        Ok(filters)
    }
}
