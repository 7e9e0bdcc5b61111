//! Values of the golden vectors as text: numbers in decimal, strings between quotes with `\xHH` for
//! every byte that is not a plain character, elements of an array separated by spaces.

use sapwood_packet::{Directive, Element, ElementType, Format, Shape, Values, ValuesRef};

macro_rules! by_element {
    ($element:expr, $name:ident => $numbers:expr, $strings:expr) => {
        match $element {
            ElementType::Int8 => {
                type $name = i8;
                $numbers
            }
            ElementType::Uint8 => {
                type $name = u8;
                $numbers
            }
            ElementType::Int16 => {
                type $name = i16;
                $numbers
            }
            ElementType::Uint16 => {
                type $name = u16;
                $numbers
            }
            ElementType::Int32 => {
                type $name = i32;
                $numbers
            }
            ElementType::Uint32 => {
                type $name = u32;
                $numbers
            }
            ElementType::Int64 => {
                type $name = i64;
                $numbers
            }
            ElementType::Uint64 => {
                type $name = u64;
                $numbers
            }
            ElementType::Float => {
                type $name = f32;
                $numbers
            }
            ElementType::Double => {
                type $name = f64;
                $numbers
            }
            ElementType::String => $strings,
        }
    };
}

/// The values that a format and one text each describe.
pub fn built(format: &Format, texts: &[&str]) -> Values {
    assert_eq!(format.as_ref().len(), texts.len(), "one value for each directive");
    format.as_ref().directives().zip(texts).fold(Values::new(), |values, (directive, text)| {
        by_element!(directive.element, T => with_numbers::<T>(values, directive, text),
            with_strings(values, directive, text))
    })
}

fn with_numbers<T: Element + std::str::FromStr>(
    values: Values,
    directive: Directive,
    text: &str,
) -> Values {
    let number = |text: &str| {
        text.parse::<T>().unwrap_or_else(|_| panic!("'{text}' is no value of {directive}"))
    };
    let numbers: Vec<T> = text.split_whitespace().map(number).collect();
    match directive.shape {
        Shape::Scalar => values.scalar(numbers[0]),
        Shape::Array => values.array(&numbers),
        Shape::LargeArray => values.large_array(&numbers),
    }
}

fn with_strings(values: Values, directive: Directive, text: &str) -> Values {
    // Between quotes lie the strings, so every second part is one.
    let strings: Vec<Vec<u8>> = text.split('"').skip(1).step_by(2).map(unescaped).collect();
    match directive.shape {
        Shape::Scalar => values.string(&strings[0]),
        Shape::Array => values.strings(&strings),
        Shape::LargeArray => values.large_strings(&strings),
    }
}

/// One text for each value.
pub fn texts(values: ValuesRef<'_>) -> Vec<String> {
    let text = |(index, directive): (usize, Directive)| {
        by_element!(directive.element, T => numbers::<T>(values, index, directive.shape),
            strings(values, index, directive.shape))
    };
    values.format().directives().enumerate().map(text).collect()
}

fn numbers<T: Element + std::fmt::Display>(
    values: ValuesRef<'_>,
    index: usize,
    shape: Shape,
) -> String {
    if shape == Shape::Scalar {
        return values.scalar::<T>(index).expect("a scalar of its type").to_string();
    }
    let numbers = values.array::<T>(index).expect("an array of its type");
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn strings(values: ValuesRef<'_>, index: usize, shape: Shape) -> String {
    if shape == Shape::Scalar {
        return quoted(values.string_bytes(index).expect("a string"));
    }
    let strings = values.strings(index).expect("an array of strings");
    strings.map(quoted).collect::<Vec<_>>().join(" ")
}

fn quoted(bytes: &[u8]) -> String {
    let plain = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\';
    let escaped = |&byte: &u8| {
        if plain(byte) { char::from(byte).to_string() } else { format!("\\x{byte:02x}") }
    };
    format!("\"{}\"", bytes.iter().map(escaped).collect::<String>())
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).expect("two digits after \\x"));
        bytes.extend(&part.as_bytes()[2..]);
    }
    bytes
}
