//! `number-classes`: equivalence classes of numbers, in the layout of MRNet's filter of that kind.
//!
//! ```text
//! %aud  the values, one per class
//! %aud  how many members each class has
//! %aud  the members, class after class
//! ```
//!
//! What it gives it also takes. Classes keep the order in which they were first met.

use std::collections::BTreeMap;

use sapwood::{Emitter, Filter, FilterError, Values, ValuesRef, WaveRef};

pub(super) const NAME: &str = "number-classes";
const TAKES: &str = "%aud %aud %aud: values, sizes and members of classes";

struct Classes;

/// Makes the filter; it takes no parameters.
pub(super) fn make(parameters: ValuesRef<'_>) -> Result<Box<dyn Filter>, FilterError> {
    if parameters.is_empty() {
        Ok(Box::new(Classes))
    } else {
        Err(FilterError::Parameters { name: NAME, takes: "no parameters" })
    }
}

impl Filter for Classes {
    fn transform(&mut self, wave: &WaveRef<'_>, out: &mut Emitter) -> Result<(), FilterError> {
        let [first, ..] = wave.packets else { return Ok(()) };
        let mut order: Vec<u32> = Vec::new();
        let mut classes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for packet in wave.packets {
            let format = packet.format.to_string();
            let wrong = || FilterError::Format { name: NAME, takes: TAKES, format: format.clone() };
            let values = packet.values();
            if values.len() != 3 {
                return Err(wrong());
            }
            let array = |index| values.array::<u32>(index).map_err(|_| wrong());
            let (keys, sizes, mut members) = (array(0)?, array(1)?, array(2)?);
            if keys.len() != sizes.len() {
                return Err(wrong());
            }
            for (&key, &size) in keys.iter().zip(sizes) {
                let Some((own, rest)) = members.split_at_checked(size as usize) else {
                    return Err(wrong());
                };
                members = rest;
                let class = classes.entry(key).or_insert_with(|| {
                    order.push(key);
                    Vec::new()
                });
                class.extend_from_slice(own);
            }
        }
        let sizes: Vec<u32> = order.iter().map(|key| classes[key].len() as u32).collect();
        let members: Vec<u32> = order.iter().flat_map(|key| &classes[key]).copied().collect();
        out.emit(first.header.tag, Values::new().array(&order).array(&sizes).array(&members));
        Ok(())
    }
}
