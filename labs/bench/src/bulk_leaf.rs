//! A back-end's part in `sapwood bench bulk`: it takes what comes down and sends as much up.
//!
//! Owns the orders that go down, and the array that travels: the same elements as the floor's, of
//! which one in every page is compared with what it must be.

use sapwood::{BackEnd, Error, Received, Tag, Values, ValuesRef};
use sapwood_floor::Load;

use super::leaf::{Payload, TAG};
use sapwood_command_line::exit::Failure;

/// A packet on its way down, of which more follow.
pub(super) const DOWN: Tag = TAG + 20;
/// The last of them, which is answered by a one.
pub(super) const LAST_DOWN: Tag = TAG + 21;
/// Asks to make what is to be sent up: one array with the length of a packet, and how many there
/// are to be. Answered by a one.
pub(super) const PREPARE: Tag = TAG + 22;
/// Asks for it, on the stream that it comes on.
pub(super) const UP: Tag = TAG + 23;

/// Asks to make what is to be summed: one array with the count of f64s and the wave. Answered by a
/// one.
pub(super) const PREPARE_SUM: Tag = TAG + 24;

const ELEMENT_BYTES: usize = 8;

/// Elements between two that are compared: one in every page.
const STRIDE: usize = 512;

/// The array of one sender.
pub(super) struct Array {
    elements: Vec<u64>,
}

impl Array {
    pub(super) fn new(rank: u32, packet_bytes: usize) -> Self {
        Self { elements: (0..packet_bytes / ELEMENT_BYTES).map(|at| element(rank, at)).collect() }
    }

    /// As the packet of that number.
    pub(super) fn numbered(&mut self, number: u64) -> &[u64] {
        self.elements[0] = number;
        &self.elements
    }
}

fn element(rank: u32, at: usize) -> u64 {
    ((u64::from(rank) + 1) << 40) + at as u64
}

/// Compares a packet with what it must be.
pub(super) fn check(
    values: ValuesRef<'_>,
    rank: u32,
    number: u64,
    packet_bytes: usize,
) -> Result<(), Failure> {
    let elements = values.array::<u64>(0).map_err(Error::from)?;
    let is_right = elements.len() * ELEMENT_BYTES == packet_bytes
        && elements.first() == Some(&number)
        && (STRIDE..elements.len()).step_by(STRIDE).all(|at| elements[at] == element(rank, at));
    if is_right {
        return Ok(());
    }
    Err(Failure::own(&format!(
        "packet {number} of {rank} is not what was sent; no figure of this run may be used"
    )))
}

/// What a back-end has of the transfers.
#[derive(Default)]
pub(super) struct BulkLeaf {
    taken: u64,
    array: Option<Array>,
    /// The only packet, made beforehand.
    whole: Option<Values>,
    load: Option<Load>,
    addends: Payload,
}

impl BulkLeaf {
    /// Deals with a packet, if it is one of these; whether it was.
    pub(super) fn serve(
        &mut self,
        back_end: &mut BackEnd,
        received: &Received,
    ) -> Result<bool, Failure> {
        match received.tag() {
            DOWN | LAST_DOWN => self.take(back_end, received)?,
            PREPARE => self.prepare(back_end, received)?,
            PREPARE_SUM => self.prepare_sum(back_end, received)?,
            UP => self.send_up(back_end, received)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take(&mut self, back_end: &mut BackEnd, received: &Received) -> Result<(), Failure> {
        let values = received.values();
        let length = values.array::<u64>(0).map_err(Error::from)?.len() * ELEMENT_BYTES;
        check(values, 0, self.taken, length)?;
        self.taken += 1;
        if received.tag() == LAST_DOWN {
            self.taken = 0;
            back_end.send(received.stream, TAG, 1_u64)?;
        }
        Ok(())
    }

    fn prepare(&mut self, back_end: &mut BackEnd, received: &Received) -> Result<(), Failure> {
        let words = received.values().array::<u64>(0).map_err(Error::from)?;
        let [packet_bytes, packets] = *words else {
            return Err(Failure::own(&"an order of the benchmark has two numbers"));
        };
        let load = Load { packet_bytes: packet_bytes as usize, packets };
        if self.load != Some(load) {
            self.array = Some(Array::new(back_end.rank(), load.packet_bytes));
        }
        self.load = Some(load);
        self.whole = match &mut self.array {
            Some(array) if packets == 1 => Some(Values::new().large_array(array.numbered(0))),
            _ => None,
        };
        Ok(back_end.send(received.stream, TAG, 1_u64)?)
    }

    fn prepare_sum(&mut self, back_end: &mut BackEnd, received: &Received) -> Result<(), Failure> {
        let words = received.values().array::<u64>(0).map_err(Error::from)?;
        let [elements, wave] = *words else {
            return Err(Failure::own(&"an order of the benchmark has two numbers"));
        };
        let elements = self.addends.elements_of(back_end.rank(), elements, wave);
        self.whole = Some(Values::new().array(elements));
        Ok(back_end.send(received.stream, TAG, 1_u64)?)
    }

    fn send_up(&mut self, back_end: &mut BackEnd, received: &Received) -> Result<(), Failure> {
        if let Some(values) = self.whole.take() {
            return Ok(back_end.send(received.stream, TAG, values)?);
        }
        let (Some(load), Some(array)) = (self.load, &mut self.array) else { return Ok(()) };
        for number in 0..load.packets {
            back_end.send(received.stream, TAG, array.numbered(number))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_right_and_nothing_else() {
        let values = Values::new().large_array(Array::new(3, 1 << 14).numbered(7));
        assert!(check(values.as_ref(), 3, 7, 1 << 14).is_ok());
        assert!(check(values.as_ref(), 3, 8, 1 << 14).is_err());
        assert!(check(values.as_ref(), 2, 7, 1 << 14).is_err());
        assert!(check(values.as_ref(), 3, 7, 1 << 13).is_err());
    }
}
