//! `count`: the number of back-ends that contributed, as one `%uld`. Their values are ignored.

use alloc::boxed::Box;

use sapwood_packet::{Directive, ElementType, Format, Shape, ValuesRef};

use crate::registry::no_parameters;
use crate::{Emitter, Filter, FilterError, WaveRef};

struct Count;

/// Makes the filter; it takes no parameters.
pub(crate) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    no_parameters("count", parameters)?;
    Ok(Box::new(Count))
}

impl Filter for Count {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let [first, ..] = wave.packets else { return Ok(()) };
        let format = Format::from_iter([Directive::new(ElementType::Uint64, Shape::Scalar)]);
        out.emit_built(first.header.tag, format, 8, |bytes| {
            bytes.extend_u64(wave.contributors.len());
            Ok(())
        })
    }
}
