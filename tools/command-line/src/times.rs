//! Times as people write them on command lines.

use std::time::Duration;

/// The longest time that can be named, in seconds: some thirty years.
const SECONDS_MAX: f64 = 1e9;

/// The longest time that a single host, or a wave, may be given.
const PATIENCE_MAX: Duration = Duration::from_secs(3600);

/// A time: `500ms`, `2s`, `5m`, `1h`, or a number of seconds such as `1.5`. 0 is for ever where
/// that makes sense.
pub fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a time; write 500ms, 2s, 5m, 1h or 1.5");
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("", 1.0)];
    let with_unit = |&(unit, seconds)| Some((text.strip_suffix(unit)?, seconds));
    let (number, unit) = units.iter().find_map(with_unit).ok_or_else(wrong)?;
    // Words that are numbers to a machine, such as `inf`, are none to people.
    let is_plain = |c: char| c.is_ascii_digit() || c == '.';
    let number: f64 = Some(number)
        .filter(|text| text.chars().all(is_plain))
        .ok_or_else(wrong)?
        .parse()
        .map_err(|_| wrong())?;
    match number * unit <= SECONDS_MAX {
        true => Ok(Duration::from_secs_f64(number * unit)),
        false => Err("give a time of at most 10^9 seconds".to_owned()),
    }
}

/// A time to wait: not for ever, and not for nothing.
pub fn patience(text: &str) -> Result<Duration, String> {
    let time = time(text)?;
    match time.is_zero() || time > PATIENCE_MAX {
        true => Err("give a time above 0 and up to 1h, such as 2s".to_owned()),
        false => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_and_without_units() {
        for (text, milliseconds) in [
            ("500ms", 500),
            ("2s", 2000),
            ("1.5", 1500),
            ("0.5m", 30_000),
            ("0", 0),
            ("2h", 7_200_000),
        ] {
            assert_eq!(time(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "ms", "s", "-1s", "1e3", "inf", "NaN", "1.2.3", "2 s", "99999999999s"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn patience_has_limits() {
        assert_eq!(patience("1ms"), Ok(Duration::from_millis(1)));
        assert!(patience("0").is_err() && patience("3601").is_err());
    }
}
