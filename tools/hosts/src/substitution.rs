//! The marks `%h`, `%n` and `%u` in words that differ from host to host.

/// Puts the host and its number in the place of `%h` or `%host`, `%n` or `%rank`, and the user in
/// that of `%u` or `%user`; `%%` is a percent sign.
pub fn substitute(text: &str, host: &str, place: usize) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        replaced.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let user = || std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
        let known: [(&str, &dyn Fn() -> String); 7] = [
            ("%", &|| "%".to_string()),
            ("host", &|| host.to_string()),
            ("h", &|| host.to_string()),
            ("rank", &|| place.to_string()),
            ("n", &|| place.to_string()),
            ("user", &|| user().unwrap_or_default()),
            ("u", &|| user().unwrap_or_default()),
        ];
        match known.iter().find(|(name, _)| behind.starts_with(name)) {
            Some((name, value)) => {
                replaced.push_str(&value());
                rest = &behind[name.len()..];
            }
            None => {
                replaced.push('%');
                rest = behind;
            }
        }
    }
    replaced + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_and_its_number_are_put_in() {
        assert_eq!(substitute("%h-%host %n/%rank %% %d 100%", "n7", 6), "n7-n7 6/6 % %d 100%");
        assert_eq!(substitute("nothing", "n7", 6), "nothing");
    }
}
