//! Which tests a program's output says have failed, and how many have passed.
//!
//! [`Reading`] is given the output line by line. It knows what cargo, Python's unittest and pytest,
//! and node's test runner print.

/// What a finished program said about tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: u64,
    pub failed: u64,
}

impl Counts {
    pub fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    /// Reads `12 passed; 1 failed`, `12 passed, 1 failed`, `1 failed, 12 passed` or, of pytest,
    /// `12 passed in 3.1s`.
    fn of_line(line: &str) -> Option<Counts> {
        let before = |word: &str| -> Option<u64> {
            let (start, _) = line.split_once(word)?;
            start.split(' ').next_back()?.parse().ok()
        };
        let passed = before(" passed")?;
        match before(" failed") {
            Some(failed) => Some(Counts { passed, failed }),
            None if line.trim_end_matches(" =").contains("s (") || line.contains(" in ") => {
                Some(Counts { passed, failed: 0 })
            }
            None => None,
        }
    }
}

/// One test that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedTest {
    pub name: String,
    /// The arguments of `cargo test` that build and run what holds it; empty for other runners.
    pub package: String,
}

/// What has been read so far.
#[derive(Default)]
pub struct Reading {
    pub counts: Counts,
    pub failed: Vec<FailedTest>,
    /// Of cargo: failed tests of each test program so far, the last of which is being read.
    programs: Vec<Vec<String>>,
    is_list_of_programs: bool,
    /// Of unittest: tests that were run, until the line that says how many of them failed.
    ran: Option<u64>,
}

impl Reading {
    pub fn line(&mut self, line: &str) {
        let text = line.trim();
        if let Some(counts) = Counts::of_line(text) {
            self.counts.add(counts);
        }
        self.cargo(text);
        self.unittest(text);
        if let Some(name) = other_runner(text) {
            self.note(name);
        }
    }

    fn note(&mut self, name: &str) {
        let test = FailedTest { name: name.to_owned(), package: String::new() };
        if !self.failed.contains(&test) {
            self.failed.push(test);
        }
    }

    /// Names come first, each under its program; the arguments of the programs come at the end, in
    /// the same order.
    fn cargo(&mut self, text: &str) {
        if text.starts_with("Running ") || text.starts_with("Doc-tests ") {
            self.programs.push(Vec::new());
        } else if let Some(name) =
            text.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            match self.programs.last_mut() {
                Some(names) => names.push(name.to_owned()),
                None => self.note(name),
            }
        } else if text.starts_with("error: ")
            && (text.ends_with("targets failed:") || text.ends_with("target failed:"))
        {
            self.programs.retain(|names| !names.is_empty());
            self.programs.reverse();
            self.is_list_of_programs = true;
        } else if self.is_list_of_programs
            && let Some(package) = text.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'))
        {
            // A program that was killed says no names.
            for name in self.programs.pop().unwrap_or_else(|| vec![String::new()]) {
                self.failed.push(FailedTest { name, package: package.to_owned() });
            }
        }
    }

    fn unittest(&mut self, text: &str) {
        if let Some(rest) = text.strip_prefix("Ran ") {
            self.ran = rest.split(' ').next().and_then(|number| number.parse().ok());
        } else if let Some(ran) = self.ran
            && (text == "OK" || text.starts_with("OK ("))
        {
            self.counts.passed += ran;
            self.ran = None;
        } else if let Some(ran) = self.ran
            && let Some(list) = text.strip_prefix("FAILED (")
        {
            let number = |word: &str| -> u64 {
                let after = list.split_once(word).map_or("", |(_, after)| after);
                after.split([',', ')']).next().and_then(|number| number.parse().ok()).unwrap_or(0)
            };
            let failed = number("failures=") + number("errors=");
            self.counts.add(Counts { passed: ran.saturating_sub(failed), failed });
            self.ran = None;
        }
    }

    /// Tests of programs that cargo did not list at the end, because it was ended before.
    pub fn finish(&mut self) {
        for name in std::mem::take(&mut self.programs).concat() {
            self.note(&name);
        }
    }
}

/// `FAIL: test_x (__main__.Class.test_x)`, `FAILED file.py::test - text`, `not ok 3 - name`.
fn other_runner(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix("FAIL: ").or_else(|| text.strip_prefix("ERROR: ")) {
        let (_, place) = rest.split_once(" (")?;
        let place = place.split(')').next()?;
        return Some(place.strip_prefix("__main__.").unwrap_or(place));
    }
    if let Some(rest) = text.strip_prefix("FAILED ").or_else(|| text.strip_prefix("ERROR ")) {
        let place = rest.split(" - ").next()?;
        return place.rsplit_once("::").map(|(_, name)| name);
    }
    let rest = text.strip_prefix("not ok ")?;
    rest.split_once(" - ").map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Reading {
        let mut reading = Reading::default();
        text.lines().for_each(|line| reading.line(line));
        reading.finish();
        reading
    }

    fn names(reading: &Reading) -> Vec<(&str, &str)> {
        reading.failed.iter().map(|test| (test.name.as_str(), test.package.as_str())).collect()
    }

    #[test]
    fn cargo_s_failures_come_with_what_builds_them() {
        let reading = read(
            "\
     Running unittests src/lib.rs (target/debug/deps/a-1)
test a::works ... ok
test result: ok. 1 passed; 0 failed; 0 ignored
     Running tests/b.rs (target/debug/deps/b-2)
test first ... FAILED
test second ... FAILED
test result: FAILED. 3 passed; 2 failed; 0 ignored
     Running tests/c.rs (target/debug/deps/c-3)
test third ... FAILED
test result: FAILED. 0 passed; 1 failed; 0 ignored
error: 2 targets failed:
    `-p x --test b`
    `-p y --test c`",
        );
        assert_eq!(reading.counts, Counts { passed: 4, failed: 3 });
        let expected =
            [("first", "-p x --test b"), ("second", "-p x --test b"), ("third", "-p y --test c")];
        assert_eq!(names(&reading), expected);
    }

    #[test]
    fn unittest_s_failures_are_counted_and_named_by_class() {
        let reading = read(
            "\
FAIL: test_x (__main__.Mpich.test_x)
ERROR: test_y (test_mpi.Jobs.test_y)
Ran 22 tests in 25.446s

FAILED (failures=1, errors=1)
Ran 3 tests in 1.0s

OK (skipped=1)",
        );
        assert_eq!(reading.counts, Counts { passed: 23, failed: 2 });
        assert_eq!(names(&reading), [("Mpich.test_x", ""), ("test_mpi.Jobs.test_y", "")]);
    }

    #[test]
    fn pytest_and_node_name_their_failures() {
        let reading = read(
            "\
FAILED tests/test_a.py::test_sum[4] - assert 1 == 2
not ok 3 - a page shows the ranks
============ 1 failed, 164 passed in 3.10s ============
165 passed in 2.00s",
        );
        assert_eq!(reading.counts, Counts { passed: 329, failed: 1 });
        assert_eq!(names(&reading), [("test_sum[4]", ""), ("a page shows the ranks", "")]);
    }

    #[test]
    fn other_lines_count_nothing() {
        assert_eq!(Counts::of_line("all passed, none failed"), None);
        assert_eq!(Counts::of_line("3 passed"), None);
        assert!(read("error: could not compile\nFAILED").failed.is_empty());
    }
}
