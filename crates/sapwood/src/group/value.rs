//! Numbers as bytes, little-endian, and back.

use sapwood_group::Element;

/// A type of numbers that reductions work on.
pub trait Number: Copy {
    /// The type as members tell it each other.
    const ELEMENT: Element;

    /// Appends the bytes.
    fn append(self, bytes: &mut Vec<u8>);

    /// Puts its bytes in the place of others, which are as many.
    fn write(self, place: &mut [u8]);

    /// The number of these bytes; none if they are too few or too many.
    fn read(bytes: &[u8]) -> Option<Self>;
}

macro_rules! number {
    ($($type:ty: $element:ident,)*) => {$(
        impl Number for $type {
            const ELEMENT: Element = Element::$element;

            fn append(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn write(self, place: &mut [u8]) {
                place.copy_from_slice(&self.to_le_bytes());
            }

            fn read(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_le_bytes)
            }
        }
    )*};
}

number! {
    u8: Byte,
    i32: I32,
    i64: I64,
    f32: F32,
    f64: F64,
}

/// The bytes of numbers.
pub(super) fn bytes_of<T: Number>(numbers: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(numbers));
    numbers.iter().for_each(|number| number.append(&mut bytes));
    bytes
}

/// The numbers of bytes; none if they do not come out even.
pub(super) fn numbers_of<T: Number>(bytes: &[u8]) -> Option<Vec<T>> {
    bytes.chunks(T::ELEMENT.bytes()).map(T::read).collect()
}
