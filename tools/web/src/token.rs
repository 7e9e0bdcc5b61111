//! The token in the page's address: a browser that has it may look, and may ask for changes.

use std::fmt;

/// Bytes of randomness.
const TOKEN_BYTES: usize = 16;

/// A random word of hexadecimal digits.
pub(crate) struct Token(String);

impl Token {
    /// A new one.
    ///
    /// # Errors
    /// The system's, if it gives no randomness.
    pub(crate) fn random() -> std::io::Result<Self> {
        let mut bytes = [0_u8; TOKEN_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Whether a word is the token. The hashes are compared, in constant time, so that the time
    /// that it takes tells nothing of how much was right.
    pub(crate) fn is(&self, word: &str) -> bool {
        blake3::hash(self.0.as_bytes()) == blake3::hash(word.as_bytes())
    }
}

impl fmt::Display for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_the_token() {
        let token = Token::random().expect("the system gives randomness");
        let text = token.to_string();
        assert_eq!(text.len(), 2 * TOKEN_BYTES);
        assert!(token.is(&text));
        for wrong in ["", &text[1..], &text.to_uppercase(), &format!("{text}0")] {
            assert!(!token.is(wrong) || wrong == text, "{wrong}");
        }
        assert!(!token.is(&Token::random().expect("more randomness").to_string()));
    }
}
