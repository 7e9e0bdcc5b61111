//! One instance of a filter in a shared object.

use std::sync::Arc;

use sapwood_filter::{Emitter, Filter, FilterError, State, WaveRef};
use sapwood_packet::{Values, ValuesRef};

use super::creation::Creation;
use super::emission::Emission;
use super::interface::{COMPOSABLE, REBUILDABLE, RawFilter};
use super::library::Library;
use super::view::{View, push_values};
use crate::ExtensionError;

/// An instance with the state that its functions make.
pub(super) struct NativeInstance {
    pub(super) name: String,
    pub(super) functions: RawFilter,
    pub(super) creation: Creation,
}

impl NativeInstance {
    /// Makes an instance out of parameters.
    pub(super) fn create(
        library: Arc<Library>,
        name: &str,
        parameters: ValuesRef<'_>,
    ) -> Result<Self, FilterError> {
        let (name, functions) = library.find(name)?;
        let name = name.to_string();
        let creation = Creation::begin(library, &name, functions, parameters)?;
        Ok(Self { name, functions, creation })
    }
}

/// A filter in a shared object.
pub(super) struct NativeFilter {
    instance: NativeInstance,
    view: View,
}

// SAFETY: the header demands that an instance can be used by one thread after another; the pointers
// of the view are only good during a call.
unsafe impl Send for NativeFilter {}

impl NativeFilter {
    pub(super) fn new(
        library: Arc<Library>,
        name: &str,
        parameters: ValuesRef<'_>,
    ) -> Result<Self, FilterError> {
        let (name, functions) = library.find(name)?;
        let is_composable = functions.state_kind == COMPOSABLE;
        if functions.transform.is_none() {
            return Err(failed(name, "is a synchronisation rule and has no transform"));
        }
        if functions.state_kind > COMPOSABLE
            || is_composable && (functions.save.is_none() || functions.merge.is_none())
        {
            return Err(failed(name, "states a kind of state that it has no functions for"));
        }
        let name = name.to_string();
        Ok(Self {
            instance: NativeInstance::create(library, &name, parameters)?,
            view: View::default(),
        })
    }
}

pub(super) fn failed(name: &str, reason: &str) -> FilterError {
    ExtensionError::Filter { name: name.to_string(), reason: reason.to_string() }.into()
}

impl Filter for NativeFilter {
    #[inline]
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let shown = self.view.show(wave)?;
        let NativeInstance { name, functions, creation } = &mut self.instance;
        let Some(transform) = functions.transform else {
            return Err(failed(name, "has no transform"));
        };
        let state = creation.state(name)?;
        let mut out = Emission::into(out);
        // SAFETY: the header's contract; wave, view and emission live until the call returns.
        let code = unsafe { transform(state, &raw const shown, out.as_raw()) };
        out.outcome(name, code)
    }

    fn is_offloaded(&self) -> bool {
        true
    }

    fn state(&self) -> State {
        match self.instance.functions.state_kind {
            COMPOSABLE => State::Composable,
            REBUILDABLE => State::Rebuildable,
            _ => State::None,
        }
    }

    fn save(&self) -> Option<Values> {
        let NativeInstance { name, functions, creation } = &self.instance;
        let save = functions.save?;
        let state = creation.made()?;
        let mut emitter = Emitter::new();
        let mut out = Emission::into(&mut emitter);
        // SAFETY: the header's contract; the emission lives until the call returns.
        let code = unsafe { save(state, out.as_raw()) };
        // A failed copy is skipped: the state is lost if the process dies before the next one.
        out.outcome(name, code).ok()?;
        let (_, values) = emitter.emissions().next()?;
        Some(values.to_values())
    }

    fn absorb(&mut self, state: ValuesRef<'_>) -> Result<(), FilterError> {
        let NativeInstance { name, functions, creation } = &mut self.instance;
        let Some(merge) = functions.merge else { return Err(failed(name, "merges no states")) };
        let own = creation.state(name)?;
        let copy = state.to_values();
        let mut values = Vec::new();
        push_values(&mut values, copy.as_ref())?;
        let mut emitter = Emitter::new();
        let mut out = Emission::into(&mut emitter);
        // SAFETY: the header's contract; the values live until the call returns.
        let code = unsafe { merge(own, values.as_ptr(), values.len() as u32, out.as_raw()) };
        out.outcome(name, code)
    }
}
