//! The marks `%h`, `%n` and `%u` in words that differ from host to host.

/// Puts the host and its number in the place of `%h` or `%host`, `%n` or `%rank`, and the user in
/// that of `%u` or `%user`; `%%` is a percent sign.
pub fn substitute(text: &str, host: &str, place: usize) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        replaced.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let known: [(&str, &dyn Fn() -> String); 7] = [
            ("%", &|| "%".to_string()),
            ("host", &|| host.to_string()),
            ("h", &|| host.to_string()),
            ("rank", &|| place.to_string()),
            ("n", &|| place.to_string()),
            ("user", &user),
            ("u", &user),
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

/// The user's name as the environment or the system's list has it, or else the number.
fn user() -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let number = rustix::process::getuid().as_raw();
    let listed = || user_of(&std::fs::read_to_string("/etc/passwd").ok()?, number);
    variable("USER")
        .or_else(|| variable("LOGNAME"))
        .or_else(listed)
        .unwrap_or_else(|| number.to_string())
}

/// The name of a user in a list whose lines are `name:password:number:...`.
fn user_of(list: &str, number: u32) -> Option<String> {
    list.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let found = fields.nth(1)?.parse::<u32>().ok()?;
        (found == number).then(|| name.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_number() {
        let list = "root:x:0:0:root:/root:/bin/sh\n#\n:x:7:\nann:x:7:7::/var/ann:/bin/sh\n";
        assert_eq!(user_of(list, 7).as_deref(), Some("ann"));
        assert_eq!(user_of(list, 0).as_deref(), Some("root"));
        assert_eq!(user_of(list, 1), None);
        assert!(!substitute("%u", "n7", 6).is_empty());
    }

    #[test]
    fn the_host_and_its_number_are_put_in() {
        assert_eq!(substitute("%h-%host %n/%rank %% %d 100%", "n7", 6), "n7-n7 6/6 % %d 100%");
        assert_eq!(substitute("nothing", "n7", 6), "nothing");
    }
}
