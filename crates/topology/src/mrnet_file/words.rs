//! Cuts a topology file into words and keeps the line of each.

/// A word of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word<'a> {
    /// A run of anything that is no blank, comment, arrow or semicolon.
    Name(&'a str),
    /// `=>`
    Arrow,
    /// `;`
    Semicolon,
}

impl<'a> Word<'a> {
    pub fn text(self) -> &'a str {
        match self {
            Self::Name(text) => text,
            Self::Arrow => "=>",
            Self::Semicolon => ";",
        }
    }
}

/// The words of a text with their lines, counted from 1.
pub(super) struct Words<'a> {
    rest: &'a str,
    line: u32,
}

impl<'a> Words<'a> {
    pub fn of(text: &'a str) -> Self {
        Self { rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1 }
    }

    /// Goes past blanks and comments.
    fn skip(&mut self) {
        let mut in_comment = false;
        for (at, byte) in self.rest.bytes().enumerate() {
            match byte {
                b'\n' => {
                    self.line = self.line.saturating_add(1);
                    in_comment = false;
                }
                b'#' => in_comment = true,
                _ if in_comment || byte.is_ascii_whitespace() || byte == 0x0b => {}
                _ => {
                    self.rest = &self.rest[at..];
                    return;
                }
            }
        }
        self.rest = "";
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = (u32, Word<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.skip();
        let word = match self.rest.as_bytes() {
            [] => return None,
            [b';', ..] => Word::Semicolon,
            [b'=', b'>', ..] => Word::Arrow,
            _ => Word::Name(&self.rest[..name_length(self.rest)]),
        };
        self.rest = &self.rest[word.text().len()..];
        Some((self.line, word))
    }
}

/// Length of the name at the start of a text. All ends are ASCII, so it is a character boundary.
fn name_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    (0..bytes.len())
        .find(|at| {
            let byte = bytes[*at];
            byte.is_ascii_whitespace()
                || byte == 0x0b
                || matches!(byte, b';' | b'#')
                || bytes[*at..].starts_with(b"=>")
        })
        .unwrap_or(bytes.len())
}
