//! One instance of a module: its memory, its fuel, and what it emits.

use sapwood_filter::{Emitter, FilterError};
use sapwood_packet::{DIRECTIVES_MAX, Format};
use wasmi::errors::ErrorKind;
use wasmi::{
    Caller, Extern, Instance as Running, Linker, Memory, Ref, Store, StoreLimits,
    StoreLimitsBuilder, Table, TrapCode, TypedFunc, WasmParams, WasmResults,
};

use super::layout::{VALUE_BYTES, u32_at, u64_at};
use super::module::WasmModule;
use super::{CALL_FUEL, MEMORY_BYTES_MAX, START_FUEL};
use crate::ExtensionError;
use crate::value_span::{check_value, push_value};

const PAGE_BYTES: usize = 64 << 10;

/// Longest reason that is kept, in bytes.
const REASON_BYTES_MAX: usize = 4096;

/// Steps that a call of `emit` or `fail` costs, beside one for each few bytes that it copies: as
/// much as the work takes here, so that the limit of steps bounds that, too.
const IMPORT_FUEL: u64 = 200;
const BYTES_PER_STEP: u64 = 4;

/// What the functions that an instance imports work on.
pub(super) struct Host {
    limits: StoreLimits,
    memory: Option<Memory>,
    /// The node's emitter, during a call.
    pub(super) emitter: Emitter,
    /// Bytes that the call has emitted.
    emitted: usize,
    reason: Option<String>,
}

impl Host {
    fn refuse(&mut self, reason: &str) {
        // The first reason is the cause of those that follow.
        if self.reason.is_none() {
            self.reason = Some(reason.to_string());
        }
    }
}

/// A running module.
pub(super) struct WasmInstance {
    pub(super) store: Store<Host>,
    running: Running,
    memory: Memory,
    table: Table,
    /// The pages that this side has taken for what it writes: where, and how many bytes.
    area: (u32, usize),
}

impl WasmInstance {
    pub(super) fn new(module: &WasmModule) -> Result<Self, ExtensionError> {
        let load = |reason: String| ExtensionError::Load { file: module.file().into(), reason };
        let limits = StoreLimitsBuilder::new()
            .memory_size(MEMORY_BYTES_MAX)
            .table_elements(1 << 16)
            .instances(1)
            .tables(4)
            .memories(1)
            .build();
        let host = Host { limits, memory: None, emitter: Emitter::new(), emitted: 0, reason: None };
        let engine = module.module().engine();
        let mut store = Store::new(engine, host);
        store.limiter(|host| &mut host.limits);
        store.set_fuel(START_FUEL).map_err(|error| load(error.to_string()))?;
        let mut linker = Linker::<Host>::new(engine);
        let defined = linker
            .func_wrap("sapwood", "emit", emit)
            .and_then(|linker| linker.func_wrap("sapwood", "fail", fail).map(|_| ()));
        defined.map_err(|error| load(error.to_string()))?;
        let running =
            linker.instantiate_and_start(&mut store, module.module()).map_err(|error| {
                load(format!("it does not start: {}", reason_of(&error, START_FUEL)))
            })?;
        let memory = running.get_memory(&store, "memory");
        let memory = memory.ok_or_else(|| load("it exports no 'memory'".into()))?;
        let tables = running.exports(&store).filter_map(|export| match export.into_extern() {
            Extern::Table(table) => Some(table),
            _ => None,
        });
        let table = tables.into_iter().next();
        let table = table.ok_or_else(|| {
            load("it exports no table of functions; link it with --export-table".into())
        })?;
        store.data_mut().memory = Some(memory);
        Ok(Self { store, running, memory, table, area: (0, 0) })
    }

    /// Where the library's description is.
    pub(super) fn library(&mut self, file: &str) -> Result<u32, ExtensionError> {
        let function = self
            .running
            .get_typed_func::<(), i32>(&self.store, "sapwood_filter_v1")
            .map_err(|_| ExtensionError::Symbol { file: file.to_string() })?;
        let at = function.call(&mut self.store, ()).map_err(|error| ExtensionError::Load {
            file: file.to_string(),
            reason: reason_of(&error, START_FUEL),
        })?;
        Ok(at.cast_unsigned())
    }

    pub(super) fn memory(&self) -> &[u8] {
        self.memory.data(&self.store)
    }

    /// A function of the table, if it is one of that type.
    pub(super) fn function<P: WasmParams, R: WasmResults>(
        &self,
        index: u32,
    ) -> Option<TypedFunc<P, R>> {
        let Ref::Func(function) = self.table.get(&self.store, index.into())? else { return None };
        function.val()?.typed(&self.store).ok()
    }

    /// An area of at least `bytes` bytes in the instance's memory that belongs to the host, and its
    /// offset: a multiple of 8. Its contents are unspecified.
    pub(super) fn area(&mut self, bytes: usize) -> Result<(&mut [u8], u32), String> {
        if bytes > self.area.1 {
            self.enlarge_area(bytes)?;
        }
        let start = self.area.0;
        let memory = self.memory.data_mut(&mut self.store);
        let part = memory.get_mut(start as usize..start as usize + bytes);
        part.map(|part| (part, start)).ok_or_else(|| String::from("its memory has shrunk"))
    }

    #[cold]
    fn enlarge_area(&mut self, bytes: usize) -> Result<(), String> {
        // Twice as much as is needed, so that growing waves leave little behind.
        let wanted = [bytes.saturating_mul(2), bytes];
        let end = self.area.0 as usize + self.area.1;
        for wanted in wanted {
            let is_last = self.memory.data_size(&self.store) == end;
            let more = if is_last { wanted - self.area.1.min(wanted) } else { wanted };
            let pages = more.div_ceil(PAGE_BYTES);
            let Ok(before) = self.memory.grow(&mut self.store, pages as u64) else { continue };
            let begin = before as usize * PAGE_BYTES;
            self.area = match is_last {
                true => (self.area.0, self.area.1 + pages * PAGE_BYTES),
                false => (begin as u32, pages * PAGE_BYTES),
            };
            return Ok(());
        }
        Err(format!(
            "a wave of {bytes} bytes has no room in its {MEMORY_BYTES_MAX} bytes of memory"
        ))
    }

    /// Calls a function that emits into `emitter`, with fresh fuel. Gives its outcome, or why it
    /// was ended; the instance must not be used any more then.
    #[inline]
    pub(super) fn call<P: WasmParams>(
        &mut self,
        function: TypedFunc<P, i32>,
        parameters: P,
        emitter: &mut Emitter,
    ) -> Result<Outcome, String> {
        self.store.set_fuel(CALL_FUEL).map_err(|error| error.to_string())?;
        // The functions that it imports need the emitter for themselves.
        let host = self.store.data_mut();
        std::mem::swap(emitter, &mut host.emitter);
        host.emitted = 0;
        let called = function.call(&mut self.store, parameters);
        let host = self.store.data_mut();
        std::mem::swap(emitter, &mut host.emitter);
        let reason = host.reason.take();
        match called {
            Ok(code) => Ok(Outcome { code, reason }),
            Err(error) => Err(reason_of(&error, CALL_FUEL)),
        }
    }
}

/// What a function has given.
pub(super) struct Outcome {
    code: i32,
    reason: Option<String>,
}

impl Outcome {
    pub(super) fn check(self, name: &str) -> Result<(), FilterError> {
        match (self.code, self.reason) {
            (0, None) => Ok(()),
            (code, reason) => {
                let reason =
                    reason.unwrap_or_else(|| format!("failed with {code} and gave no reason"));
                Err(ExtensionError::Filter { name: name.to_string(), reason }.into())
            }
        }
    }
}

/// Why the interpreter has ended a call.
#[cold]
fn reason_of(error: &wasmi::Error, fuel: u64) -> String {
    match (error.as_trap_code(), error.kind()) {
        (Some(TrapCode::OutOfFuel), _) => {
            format!("runs too long: it has used up the {fuel} steps of one call")
        }
        (Some(code), _) => format!("was ended: {code}"),
        (None, ErrorKind::Fuel(_)) => {
            format!("runs too long: it needs more than {fuel} steps")
        }
        (None, _) => error.to_string(),
    }
}

/// Takes the steps that a call of this side costs: some, and one for each few bytes it copies.
fn charge(caller: &mut Caller<'_, Host>, bytes: usize) -> Result<(), wasmi::Error> {
    let cost = IMPORT_FUEL + bytes as u64 / BYTES_PER_STEP;
    let left = caller.get_fuel()?.checked_sub(cost).ok_or(TrapCode::OutOfFuel)?;
    caller.set_fuel(left)
}

/// `emit(out, way, tag, values, count) -> 0 or 1`
fn emit(
    mut caller: Caller<'_, Host>,
    _: i32,
    way: i32,
    tag: i32,
    values: i32,
    count: i32,
) -> Result<i32, wasmi::Error> {
    let Some(memory) = caller.data().memory else { return Ok(1) };
    let (memory, host) = memory.data_and_store_mut(&mut caller);
    let before = host.emitted;
    let made =
        emit_from(memory, host, way == 1, tag, values.cast_unsigned(), count.cast_unsigned());
    let emitted = host.emitted;
    if emitted > MEMORY_BYTES_MAX {
        let text = format!("emitted more than the {MEMORY_BYTES_MAX} bytes that one call may");
        return Err(wasmi::Error::new(text));
    }
    let code = made.map_or_else(
        |reason| {
            host.refuse(&reason);
            1
        },
        |()| 0,
    );
    charge(&mut caller, emitted - before)?;
    Ok(code)
}

fn emit_from(
    memory: &[u8],
    host: &mut Host,
    is_reply: bool,
    tag: i32,
    values: u32,
    count: u32,
) -> Result<(), String> {
    const OUTSIDE: &str = "emitted values that do not lie in its memory";
    if count as usize > DIRECTIVES_MAX {
        return Err("emitted more than 64 values, or none at NULL".into());
    }
    let table = memory.get(values as usize..).ok_or(OUTSIDE)?;
    let table = table.get(..count as usize * VALUE_BYTES).ok_or(OUTSIDE)?;
    let read = |value: &[u8]| {
        let (element, shape) = (u32_at(value, 24), u32_at(value, 28));
        let number = u64_at(value, 8);
        let (directive, length) = check_value(element, shape, number, u64_at(value, 16))?;
        let elements = memory.get(u32_at(value, 0) as usize..).ok_or(OUTSIDE)?;
        Ok((directive, number, elements.get(..length).ok_or(OUTSIDE)?))
    };
    let mut format = Format::empty();
    // Values may share their place in its memory, so that they are longer than it together.
    let mut length = 0_usize;
    for value in table.chunks_exact(VALUE_BYTES) {
        let (directive, _, elements) = read(value)?;
        format.push(directive);
        length += elements.len() + 16;
    }
    // The limit is checked before the copy.
    host.emitted = host.emitted.saturating_add(length);
    if host.emitted > MEMORY_BYTES_MAX {
        return Err("emitted too much".into());
    }
    let mut problem = "";
    let built = host.emitter.build(is_reply, tag, format, length, |body| {
        for value in table.chunks_exact(VALUE_BYTES) {
            let pushed = read(value).and_then(|(directive, number, elements)| {
                push_value(body, directive, number, elements)
            });
            if let Err(reason) = pushed {
                problem = reason;
                return Err(FilterError::Failed(String::new()));
            }
        }
        Ok(())
    });
    built.map_err(|error| match error {
        FilterError::Memory(_) => error.to_string(),
        _ => problem.to_string(),
    })
}

/// `fail(out, text, bytes) -> 1`
fn fail(mut caller: Caller<'_, Host>, _: i32, text: i32, bytes: i32) -> Result<i32, wasmi::Error> {
    charge(&mut caller, REASON_BYTES_MAX)?;
    let Some(memory) = caller.data().memory else { return Ok(1) };
    let (memory, host) = memory.data_and_store_mut(&mut caller);
    let length = (bytes.cast_unsigned() as usize).min(REASON_BYTES_MAX);
    let text = memory.get(text.cast_unsigned() as usize..).and_then(|rest| rest.get(..length));
    match text {
        Some(text) if !text.is_empty() => host.refuse(&String::from_utf8_lossy(text)),
        _ => host.refuse("failed and gave no reason"),
    }
    Ok(1)
}
