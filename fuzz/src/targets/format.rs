//! Any text as a format string, and any bytes as its codes.

use sapwood_packet::{DIRECTIVES_MAX, Format, FormatRef};

use crate::Target;

/// Format strings.
pub const TARGET: Target = Target { name: "format", run, repair: None };

fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match text.parse::<Format>() {
        Ok(format) => {
            check(format.as_ref());
            // What is read is written in one way, which is read as the same.
            assert_eq!(format.to_string().parse::<Format>(), Ok(format));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Some(format) = FormatRef::from_codes(input) {
        check(format);
        assert_eq!(format.to_string().parse::<Format>(), Ok(format.to_format()));
    }
}

fn check(format: FormatRef<'_>) {
    assert!(format.len() <= DIRECTIVES_MAX);
    assert_eq!(format.directives().count(), format.len(), "every code is a directive");
    assert_eq!(format.directives().collect::<Format>().as_ref(), format);
    assert_eq!(format.directive(format.len()), None);
}
