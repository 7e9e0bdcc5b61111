//! Why a filter could not be made or could not do its work.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use sapwood_packet::{FormatRef, OutOfMemory, PacketError, Shape, ValuesRef};

/// An error of a filter. It fails the wave at hand, never the process that runs the filter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterError {
    /// No filter of that name is known here. Cure: use one of the names listed.
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names that are known, separated by spaces.
        known: String,
    },
    /// Two filters were added by this name. Cure: give one of them another name.
    Twice {
        /// The name.
        name: String,
    },
    /// The filter was given parameters that it does not take.
    Parameters {
        /// The filter.
        name: &'static str,
        /// The parameters that it takes.
        takes: &'static str,
    },
    /// The packets of a wave differ in format or length. Cure: let all back-ends send the same.
    Mixed {
        /// The filter.
        name: &'static str,
        /// The format or length of the first packet.
        first: String,
        /// That of the packet that differs.
        other: String,
    },
    /// The filter is not defined on values of this format.
    Format {
        /// The filter.
        name: &'static str,
        /// The formats that it takes.
        takes: &'static str,
        /// The format that it received.
        format: String,
    },
    /// The process has no memory for the packet that the filter makes.
    Memory(OutOfMemory),
    /// A packet's values could not be read.
    Values(PacketError),
    /// A filter's own reason.
    Failed(String),
}

impl FilterError {
    /// The values of two packets of a wave differ in format or in the length of an array.
    #[must_use]
    #[cold]
    pub fn mixed(name: &'static str, first: ValuesRef<'_>, other: ValuesRef<'_>) -> Self {
        Self::Mixed { name, first: outline(first), other: outline(other) }
    }

    /// A filter that works on `takes` was given values of another format.
    #[must_use]
    #[cold]
    pub fn format(name: &'static str, takes: &'static str, format: FormatRef<'_>) -> Self {
        let format = if format.is_empty() { "no values".to_string() } else { format.to_string() };
        Self::Format { name, takes, format }
    }
}

/// A format with the lengths of its arrays, as `%d %alf[8]`.
fn outline(values: ValuesRef<'_>) -> String {
    let mut text = String::new();
    for (index, directive) in values.format().directives().enumerate() {
        if index > 0 {
            text.push(' ');
        }
        text.push_str(&directive.to_string());
        if directive.shape == Shape::Scalar {
            continue;
        }
        let count = values.encoded(index).ok().and_then(|(_, bytes)| bytes.first_chunk());
        text.push_str(&match count {
            Some(bytes) => format!("[{}]", u64::from_le_bytes(*bytes)),
            None => "[cut]".to_string(),
        });
    }
    text
}

impl From<OutOfMemory> for FilterError {
    fn from(error: OutOfMemory) -> Self {
        Self::Memory(error)
    }
}

impl From<PacketError> for FilterError {
    fn from(error: PacketError) -> Self {
        Self::Values(error)
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, known } => {
                write!(f, "filter '{name}' is not known; use one of: {known}")
            }
            Self::Twice { name } => write!(
                f,
                "this process has two filters named '{name}'; give one of them another name"
            ),
            Self::Parameters { name, takes } => write!(f, "filter '{name}' takes {takes}"),
            Self::Mixed { name, first, other } => write!(
                f,
                "filter '{name}': the packets of a wave differ: '{first}' and '{other}'; \
                 let all back-ends send the same"
            ),
            Self::Format { name, takes, format } => {
                write!(f, "filter '{name}' takes {takes}, not '{format}'")
            }
            Self::Memory(error) => write!(f, "{error}"),
            Self::Values(error) => write!(f, "{error}"),
            Self::Failed(reason) => f.write_str(reason),
        }
    }
}

impl core::error::Error for FilterError {}
