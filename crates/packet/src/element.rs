//! The eleven element types that a value is made of.

use bytemuck::Pod;

/// What one element of a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ElementType {
    /// `%c`: a signed byte.
    Int8 = 1,
    /// `%uc`: an unsigned byte.
    Uint8 = 2,
    /// `%hd`
    Int16 = 3,
    /// `%uhd`
    Uint16 = 4,
    /// `%d`
    Int32 = 5,
    /// `%ud`
    Uint32 = 6,
    /// `%ld`: always 64 bits.
    Int64 = 7,
    /// `%uld`: always 64 bits.
    Uint64 = 8,
    /// `%f`
    Float = 9,
    /// `%lf`
    Double = 10,
    /// `%s`: bytes without NUL.
    String = 11,
}

impl ElementType {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 11] = [
        Self::Int8,
        Self::Uint8,
        Self::Int16,
        Self::Uint16,
        Self::Int32,
        Self::Uint32,
        Self::Int64,
        Self::Uint64,
        Self::Float,
        Self::Double,
        Self::String,
    ];

    /// Length of one element in bytes; 0 for strings, which say their own.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float => 4,
            Self::Int64 | Self::Uint64 | Self::Double => 8,
            Self::String => 0,
        }
    }

    /// Whether sums and orders are defined on it.
    #[must_use]
    pub const fn is_numeric(self) -> bool {
        !matches!(self, Self::String)
    }

    /// Its letters in a format string, without `%` and array mark.
    #[must_use]
    pub const fn letters(self) -> &'static str {
        match self {
            Self::Int8 => "c",
            Self::Uint8 => "uc",
            Self::Int16 => "hd",
            Self::Uint16 => "uhd",
            Self::Int32 => "d",
            Self::Uint32 => "ud",
            Self::Int64 => "ld",
            Self::Uint64 => "uld",
            Self::Float => "f",
            Self::Double => "lf",
            Self::String => "s",
        }
    }
}

/// A Rust type that is an element as it lies in memory.
pub trait Element: Pod + PartialEq + PartialOrd + core::fmt::Debug {
    /// The element type that it is.
    const TYPE: ElementType;
    /// Its scalar directive, for messages.
    const DIRECTIVE: &'static str;
}

/// An element on which the built-in filters compute.
///
/// Integers wrap on overflow, as in C; sums that may overflow should be sent as 64 bits or `f64`.
pub trait Numeric: Element {
    /// Sum; integers wrap.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// As a double, the nearest one.
    fn to_f64(self) -> f64;
}

macro_rules! elements {
    ($($type:ty, $variant:ident, $directive:literal, $plus:expr;)*) => {$(
        impl Element for $type {
            const TYPE: ElementType = ElementType::$variant;
            const DIRECTIVE: &'static str = $directive;
        }
        impl Numeric for $type {
            #[inline]
            fn plus(self, other: Self) -> Self {
                let plus: fn($type, $type) -> $type = $plus;
                plus(self, other)
            }
            #[inline]
            #[allow(clippy::cast_precision_loss, clippy::cast_lossless)]
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    )*};
}

elements! {
    i8, Int8, "%c", |a, b| a.wrapping_add(b);
    u8, Uint8, "%uc", |a, b| a.wrapping_add(b);
    i16, Int16, "%hd", |a, b| a.wrapping_add(b);
    u16, Uint16, "%uhd", |a, b| a.wrapping_add(b);
    i32, Int32, "%d", |a, b| a.wrapping_add(b);
    u32, Uint32, "%ud", |a, b| a.wrapping_add(b);
    i64, Int64, "%ld", |a, b| a.wrapping_add(b);
    u64, Uint64, "%uld", |a, b| a.wrapping_add(b);
    f32, Float, "%f", |a, b| a + b;
    f64, Double, "%lf", |a, b| a + b;
}
