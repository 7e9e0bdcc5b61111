//! A filter, or a synchronisation rule, that an instance of a module is.
//!
//! A call that the interpreter has ended leaves an instance in an unknown state: it is dropped, and
//! the next wave is given to a new one, made of the same parameters.

use std::sync::{Arc, Mutex, PoisonError};

use sapwood_filter::{
    Arrivals, Emitter, Filter, FilterError, State, Synchronisation, Verdict, WaveRef,
};
use sapwood_packet::{Values, ValuesRef};
use wasmi::TypedFunc;

use super::instance::WasmInstance;
use super::layout::{
    FilterEntry, Writer, arrivals_length, u32_at, u64_at, values_length, wave_length,
};
use super::module::WasmModule;
use crate::ExtensionError;
use crate::native::verdict_of;

/// What the functions are given as their output: they only hand it on.
const OUT: i32 = 1;

const REBUILDABLE: u32 = 1;
const COMPOSABLE: u32 = 2;

/// `transform(state, wave, out)`
type WasmTransform = TypedFunc<(i32, i32, i32), i32>;

/// A filter's functions in an instance, and the state that they have made.
struct CreatedFilter {
    instance: WasmInstance,
    state: i32,
    transform: Option<WasmTransform>,
}

/// What both are made of.
struct Blueprint {
    module: Arc<WasmModule>,
    name: String,
    entry: FilterEntry,
    parameters: Values,
}

impl Blueprint {
    fn find(
        module: Arc<WasmModule>,
        name: &str,
        parameters: ValuesRef<'_>,
    ) -> Result<Self, FilterError> {
        let (name, entry) = module.find(name)?;
        let name = name.to_string();
        Ok(Self { module, name, entry, parameters: parameters.to_values() })
    }

    fn failed(&self, reason: impl Into<String>) -> FilterError {
        ExtensionError::Filter { name: self.name.clone(), reason: reason.into() }.into()
    }

    fn make(&self) -> Result<CreatedFilter, FilterError> {
        let instance = WasmInstance::new(&self.module)?;
        let transform = match self.entry.transform {
            0 => None,
            index => {
                let transform = instance.function(index);
                Some(transform.ok_or_else(|| self.failed("has a transform of another type"))?)
            }
        };
        let mut made = CreatedFilter { instance, state: 0, transform };
        if self.entry.create == 0 {
            return match self.parameters.as_ref().is_empty() {
                true => Ok(made),
                false => Err(self.failed("takes no parameters")),
            };
        }
        let instance = &mut made.instance;
        let create = instance.function::<(i32, i32, i32, i32), i32>(self.entry.create);
        let create = create.ok_or_else(|| self.failed("has a create of another type"))?;
        let parameters = self.parameters.as_ref();
        let length = 8 + values_length(parameters);
        let (area, base) = instance.area(length).map_err(|reason| self.failed(reason))?;
        area[..8].fill(0);
        let values = Writer::new(&mut area[8..], base + 8).put_values(parameters)?;
        let arguments = (values.cast_signed(), parameters.len() as i32, base.cast_signed(), OUT);
        let outcome = instance.call(create, arguments, &mut Emitter::new());
        outcome.map_err(|reason| self.failed(reason))?.check(&self.name)?;
        let (area, _) = instance.area(8).map_err(|reason| self.failed(reason))?;
        made.state = u32_at(area, 0).cast_signed();
        Ok(made)
    }
}

/// A filter in WebAssembly.
pub(super) struct WasmFilter {
    blueprint: Blueprint,
    /// None after a call that was ended. A copy of the state is asked for through a shared
    /// reference, though it makes the instance run.
    made: Mutex<Option<CreatedFilter>>,
}

impl WasmFilter {
    pub(super) fn new(
        module: Arc<WasmModule>,
        name: &str,
        parameters: ValuesRef<'_>,
    ) -> Result<Self, FilterError> {
        let blueprint = Blueprint::find(module, name, parameters)?;
        let entry = &blueprint.entry;
        if entry.transform == 0 {
            return Err(blueprint.failed("is a synchronisation rule and has no transform"));
        }
        let is_composable = entry.state_kind == COMPOSABLE;
        if entry.state_kind > COMPOSABLE || is_composable && (entry.save == 0 || entry.merge == 0) {
            return Err(blueprint.failed("states a kind of state that it has no functions for"));
        }
        let made = Mutex::new(Some(blueprint.make()?));
        Ok(Self { blueprint, made })
    }
}

impl Filter for WasmFilter {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let Self { blueprint, made } = self;
        let made = made.get_mut().unwrap_or_else(PoisonError::into_inner);
        if made.is_none() {
            *made = Some(blueprint.make()?);
        }
        let Some(CreatedFilter { instance, state, transform: Some(transform) }) = made else {
            return Err(blueprint.failed("has no transform"));
        };
        let (area, base) =
            instance.area(wave_length(wave)).map_err(|reason| blueprint.failed(reason))?;
        let shown = Writer::new(area, base).put_wave(wave)?;
        let (transform, arguments) = (*transform, (*state, shown.cast_signed(), OUT));
        match instance.call(transform, arguments, out) {
            Ok(outcome) => outcome.check(&blueprint.name),
            Err(reason) => {
                *made = None;
                Err(blueprint.failed(reason))
            }
        }
    }

    fn is_offloaded(&self) -> bool {
        true
    }

    fn state(&self) -> State {
        match self.blueprint.entry.state_kind {
            COMPOSABLE => State::Composable,
            REBUILDABLE => State::Rebuildable,
            _ => State::None,
        }
    }

    fn save(&self) -> Option<Values> {
        let mut slot = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let CreatedFilter { instance, state, .. } = slot.as_mut()?;
        let save = instance.function::<(i32, i32), i32>(self.blueprint.entry.save)?;
        let mut emitter = Emitter::new();
        match instance.call(save, (*state, OUT), &mut emitter) {
            Ok(outcome) => outcome.check(&self.blueprint.name).ok()?,
            Err(_) => {
                *slot = None;
                return None;
            }
        }
        let (_, values) = emitter.emissions().next()?;
        Some(values.to_values())
    }

    fn absorb(&mut self, state: ValuesRef<'_>) -> Result<(), FilterError> {
        let Self { blueprint, made } = self;
        let made = made.get_mut().unwrap_or_else(PoisonError::into_inner);
        if made.is_none() {
            *made = Some(blueprint.make()?);
        }
        let Some(CreatedFilter { instance, state: own, .. }) = made else {
            return Err(blueprint.failed("has no instance"));
        };
        let merge = instance.function::<(i32, i32, i32, i32), i32>(blueprint.entry.merge);
        let merge = merge.ok_or_else(|| blueprint.failed("merges no states"))?;
        let area = instance.area(values_length(state));
        let (area, base) = area.map_err(|reason| blueprint.failed(reason))?;
        let values = Writer::new(area, base).put_values(state)?;
        let arguments = (*own, values.cast_signed(), state.len() as i32, OUT);
        match instance.call(merge, arguments, &mut Emitter::new()) {
            Ok(outcome) => outcome.check(&blueprint.name),
            Err(reason) => {
                *made = None;
                Err(blueprint.failed(reason))
            }
        }
    }
}

/// A synchronisation rule in WebAssembly.
pub(super) struct WasmRule {
    blueprint: Blueprint,
    made: Option<CreatedFilter>,
}

impl WasmRule {
    pub(super) fn new(
        module: Arc<WasmModule>,
        name: &str,
        parameters: ValuesRef<'_>,
    ) -> Result<Self, FilterError> {
        let blueprint = Blueprint::find(module, name, parameters)?;
        if blueprint.entry.decide == 0 {
            let reason = "is a filter and no synchronisation rule: it has no decide";
            return Err(blueprint.failed(reason));
        }
        let made = Some(blueprint.make()?);
        Ok(Self { blueprint, made })
    }
}

impl Synchronisation for WasmRule {
    fn decide(&mut self, arrivals: &Arrivals<'_>) -> Result<Verdict, FilterError> {
        let Self { blueprint, made } = self;
        if made.is_none() {
            *made = Some(blueprint.make()?);
        }
        let Some(CreatedFilter { instance, state, .. }) = made else {
            return Err(blueprint.failed("has no instance"));
        };
        let decide = instance.function::<(i32, i32, i32, i32), i32>(blueprint.entry.decide);
        let decide = decide.ok_or_else(|| blueprint.failed("has a decide of another type"))?;
        let area = instance.area(8 + arrivals_length(arrivals));
        let (area, base) = area.map_err(|reason| blueprint.failed(reason))?;
        area[..8].copy_from_slice(&i64::MAX.to_le_bytes());
        let shown = Writer::new(&mut area[8..], base + 8).put_arrivals(arrivals);
        let arguments = (*state, shown.cast_signed(), base.cast_signed(), OUT);
        match instance.call(decide, arguments, &mut Emitter::new()) {
            Ok(outcome) => outcome.check(&blueprint.name)?,
            Err(reason) => {
                *made = None;
                return Err(blueprint.failed(reason));
            }
        }
        let (area, _) = instance.area(8).map_err(|reason| blueprint.failed(reason))?;
        Ok(verdict_of(u64_at(area, 0).cast_signed()))
    }

    fn is_offloaded(&self) -> bool {
        true
    }
}
