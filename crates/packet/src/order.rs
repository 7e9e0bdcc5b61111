//! The order in which a packet has its place.

use core::num::NonZeroU32;

/// In which order a packet has its place. It decides how the packet is acknowledged and whether it
/// is retransmitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Up, by its wave; down, by its packet number. Acknowledged with all before it.
    #[default]
    Wave,
    /// Up, outside of the order of waves: a late packet, or one of a stream without
    /// synchronisation. It has a number of its own on this link, from 1 on, by which it is
    /// acknowledged.
    Single(NonZeroU32),
    /// Down, one of several packets that filters made of one: its index among them. The first of
    /// them, of index 0, is [`Order::Wave`].
    Part(NonZeroU32),
    /// Outside of every order: the reply of a filter. It is not acknowledged.
    Direct,
    /// Up, behind all waves: no back-end below the sender sends anything more on this stream.
    Last,
}

impl Order {
    /// Of a packet that goes up outside of the order of waves; 0 for one that does not.
    #[must_use]
    pub fn single(number: u32) -> Self {
        NonZeroU32::new(number).map_or(Self::Wave, Self::Single)
    }

    /// Of one of several packets that filters made of one on the way down.
    #[must_use]
    pub fn part(index: u32) -> Self {
        NonZeroU32::new(index).map_or(Self::Wave, Self::Part)
    }

    /// The number of a single packet; 0 for all others.
    #[must_use]
    #[inline]
    pub fn single_number(self) -> u32 {
        match self {
            Self::Single(number) => number.get(),
            _ => 0,
        }
    }

    /// The index among the packets that filters made of one on the way down.
    #[must_use]
    #[inline]
    pub fn part_index(self) -> u32 {
        match self {
            Self::Part(index) => index.get(),
            _ => 0,
        }
    }
}
