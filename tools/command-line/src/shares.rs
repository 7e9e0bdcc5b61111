//! Shares of a processor on command lines and in files.

/// Reads a share, such as `1%`, in millionths.
///
/// # Errors
/// One line that says what is needed.
pub fn share(text: &str) -> Result<u32, String> {
    let percent = text.strip_suffix('%').and_then(|text| text.trim().parse::<f64>().ok());
    let percent = percent.filter(|percent| (0.001..=100.0).contains(percent));
    let percent = percent.ok_or("a share from 0.001% to 100% is needed, such as 1%")?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1e6 at most")]
    Ok((percent * 10_000.0).round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_number_with_a_percent_sign() {
        for (text, ppm) in
            [("1%", 10_000), ("0.001%", 10), ("12.5 %", 125_000), ("100%", 1_000_000)]
        {
            assert_eq!(share(text), Ok(ppm), "{text}");
        }
        for text in ["", "1", "0%", "101%", "-1%", "NaN%", "x%"] {
            assert!(share(text).is_err(), "{text}");
        }
    }
}
