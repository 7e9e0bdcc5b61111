//! Filters in WebAssembly, run by an interpreter: nothing outside of their own memory is within
//! their reach, and both their memory and their steps are limited.
//!
//! The interface is that of shared objects, as the same header has it for 32 bits: a module exports
//! its memory, its table of functions and `sapwood_filter_v1`, and imports `emit` and `fail` from
//! `sapwood`. A wave is copied into the instance's memory once, and what is emitted out of it once.
//! `module` is a compiled file, `instance` one that runs, `layout` the structs in its memory,
//! `filter` the filter and the synchronisation rule.

mod filter;
mod instance;
mod layout;
mod module;

use std::path::Path;
use std::sync::Arc;

use sapwood_filter::{Filter, FilterError, ShippedFile, Synchronisation};
use sapwood_packet::ValuesRef;
use wasmi::{Config, Engine};

use crate::ExtensionError;
use crate::source::Kind;
use filter::{WasmFilter, WasmRule};
pub(crate) use module::WasmModule;

/// Most memory of one instance, in bytes.
pub(crate) const MEMORY_BYTES_MAX: usize = 64 << 20;

/// Most steps of one call, in the interpreter's fuel: about one for each instruction, a second of
/// work. One that adds up as many numbers as there is memory for needs a third of it.
pub(crate) const CALL_FUEL: u64 = 250_000_000;

/// Most steps in which a module gets ready: its start function, and its `sapwood_filter_v1`. They
/// are taken where a stream is opened or a file comes, which nothing else waits behind for long.
pub(crate) const START_FUEL: u64 = CALL_FUEL / 10;

/// Files of which the filters' names begin with `wasm:`.
#[derive(Debug)]
pub(crate) struct Modules {
    engine: Engine,
}

impl Default for Modules {
    fn default() -> Self {
        let mut config = Config::default();
        config.consume_fuel(true);
        Self { engine: Engine::new(&config) }
    }
}

impl Kind for Modules {
    type Loaded = WasmModule;

    fn load(&self, file: &str, path: &Path) -> Result<Arc<WasmModule>, ExtensionError> {
        let bytes = std::fs::read(path).map_err(|error| ExtensionError::Read {
            file: file.to_string(),
            reason: error.to_string(),
        })?;
        WasmModule::compile(&self.engine, file, &bytes).map(Arc::new)
    }

    fn load_shipped(&self, file: &ShippedFile<'_>) -> Result<Arc<WasmModule>, ExtensionError> {
        WasmModule::compile(&self.engine, file.name, file.bytes).map(Arc::new)
    }

    fn filter(
        module: Arc<WasmModule>,
        name: &str,
        parameters: ValuesRef<'_>,
    ) -> Result<Box<dyn Filter>, FilterError> {
        Ok(Box::new(WasmFilter::new(module, name, parameters)?))
    }

    fn rule(
        module: Arc<WasmModule>,
        name: &str,
        parameters: ValuesRef<'_>,
    ) -> Result<Box<dyn Synchronisation>, FilterError> {
        Ok(Box::new(WasmRule::new(module, name, parameters)?))
    }
}
