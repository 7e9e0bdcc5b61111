//! `accumulate`: the sum of numbers over back-ends and waves, element by element, given once in a
//! number of waves and nothing in between.
//!
//! The parameter is that number, one integer (default [`WAVES`]). Periods are counted by the
//! numbers of the waves, at every node alike, so that what the nodes below give in the last wave of
//! a period is in what the front-end gives in that wave. A period whose last wave does not come
//! ends with the next that does. Arithmetic is that of `sum`. When the packets' format or length
//! changes from one wave to the next, that wave fails, and the sum begins anew behind it.
//!
//! The state is composable: the sum so far. It leaves the filter whole with every packet that the
//! filter gives.

use alloc::boxed::Box;

use sapwood_packet::{
    ElementType, Format, Numeric, Shape, Slab, Values, ValuesRef, Wave, answer_wave, stretch_of,
};

use crate::fold::{FoldFilter, Operation};
use crate::{Emitter, Filter, FilterError, Fold, State, WaveRef};

const NAME: &str = "accumulate";

/// Waves in a period when the stream does not say.
const WAVES: u64 = 64;

/// Adds two numbers, under this filter's name.
struct Addition;

impl Operation for Addition {
    const NAME: &'static str = NAME;

    #[inline]
    fn combine<T: Numeric>(mine: T, other: T) -> T {
        mine.plus(other)
    }
}

struct Accumulate {
    /// Waves in a period.
    waves: u64,
    addition: FoldFilter<Addition>,
    /// The wave with which the period ends, once there is one.
    due: Option<Wave>,
    /// The format of the sum, if there is one.
    format: Option<Format>,
    sum: Slab,
    /// The sum of the wave at hand, for its memory only.
    wave: Slab,
}

/// Makes the filter; its parameter is the number of waves in a period.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    Ok(Box::new(Accumulate {
        waves: waves_of(parameters)?,
        addition: FoldFilter::new(),
        due: None,
        format: None,
        sum: Slab::default(),
        wave: Slab::default(),
    }))
}

fn waves_of(parameters: ValuesRef<'_>) -> Result<u64, FilterError> {
    if parameters.is_empty() {
        return Ok(WAVES);
    }
    let takes = "one integer, the number of waves that it adds up, at least 1";
    let wrong = FilterError::Parameters { name: NAME, takes };
    let waves = match parameters.format().directive(0) {
        Some(directive) if parameters.len() == 1 && directive.shape == Shape::Scalar => {
            integer(directive.element, parameters)
        }
        _ => None,
    };
    waves.filter(|&waves| waves > 0).ok_or(wrong)
}

fn integer(element: ElementType, parameters: ValuesRef<'_>) -> Option<u64> {
    match element {
        ElementType::Uint32 => parameters.scalar::<u32>(0).ok().map(u64::from),
        ElementType::Uint64 => parameters.scalar(0).ok(),
        ElementType::Int32 => parameters.scalar::<i32>(0).ok()?.try_into().ok(),
        ElementType::Int64 => parameters.scalar::<i64>(0).ok()?.try_into().ok(),
        _ => None,
    }
}

impl Accumulate {
    /// Sums up the packets of one wave, leaving what was there before alone.
    fn sum_wave(&mut self, wave: &WaveRef<'_>) -> Result<(), FilterError> {
        let [first, others @ ..] = wave.packets else { return Ok(()) };
        self.addition.check(first.format)?;
        self.wave.clear();
        self.wave.extend(first.body);
        for other in others {
            if other.format != first.format {
                return Err(FilterError::mixed(NAME, first.values(), other.values()));
            }
            self.addition.fold(first.format, self.wave.as_mut_bytes(), other.body)?;
        }
        Ok(())
    }

    /// Adds values to the sum.
    fn add(&mut self, values: ValuesRef<'_>) -> Result<(), FilterError> {
        let Some(format) = &self.format else {
            self.sum.clear();
            self.sum.extend(values.body());
            self.format = Some(values.format().to_format());
            return Ok(());
        };
        let added = if format.as_ref() == values.format() {
            self.addition.fold(values.format(), self.sum.as_mut_bytes(), values.body())
        } else {
            let sum = ValuesRef::new(format.as_ref(), self.sum.as_bytes());
            Err(FilterError::mixed(NAME, sum, values))
        };
        if added.is_err() {
            // The sums may be changed in part, and do not fit later packets.
            self.format = None;
        }
        added
    }

    /// The last wave of the period that a wave is in; answers to questions are counted by their
    /// questions.
    fn last_of_period(&self, wave: Wave) -> Wave {
        let last = |count: u64| {
            (count / self.waves).saturating_mul(self.waves).saturating_add(self.waves - 1)
        };
        match stretch_of(wave) {
            Some(question) => answer_wave(last(question)).unwrap_or(Wave::MAX),
            None => last(wave),
        }
    }

    /// The last wave of the period behind the one that a wave has ended.
    fn last_of_next_period(&self, wave: Wave) -> Wave {
        let next = stretch_of(wave).and_then(|question| answer_wave(question + 1));
        self.last_of_period(next.unwrap_or(wave.saturating_add(1)))
    }
}

impl Filter for Accumulate {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let Some(first) = wave.packets.first() else { return Ok(()) };
        if wave.contributors.is_empty() {
            let reason = "packets have no contributors; use it on the way up";
            return Err(FilterError::Failed(alloc::format!("filter '{NAME}': {reason}")));
        }
        self.sum_wave(wave)?;
        let of_wave = core::mem::take(&mut self.wave);
        let added = self.add(ValuesRef::new(first.format, of_wave.as_bytes()));
        self.wave = of_wave;
        added?;
        let due = self.due.unwrap_or_else(|| self.last_of_period(wave.wave));
        self.due = Some(due);
        if wave.wave < due {
            return Ok(());
        }
        self.due = Some(self.last_of_next_period(wave.wave));
        if let Some(format) = self.format.take() {
            let sum = ValuesRef::new(format.as_ref(), self.sum.as_bytes());
            out.emit_encoded(first.header.tag, sum);
        }
        Ok(())
    }

    fn state(&self) -> State {
        State::Composable
    }

    fn save(&self) -> Option<Values> {
        let format = self.format.as_ref()?;
        Some(ValuesRef::new(format.as_ref(), self.sum.as_bytes()).to_values())
    }

    fn absorb(&mut self, state: ValuesRef<'_>) -> Result<(), FilterError> {
        self.addition.check(state.format())?;
        self.add(state)
    }
}
