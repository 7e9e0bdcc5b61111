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

/// What cargo says after a test program that has failed.
const FAILED_PROGRAM: &str = "to rerun pass `";
/// Lines that are kept from a remarkable one on, and in all.
const FOLLOWING_LINES: usize = 12;
const REMARKABLE_MAX: usize = 60;
/// What begins a traceback of Python, and the lines that are kept of the exception at its end.
const TRACEBACK: &str = "Traceback (most recent call last)";
const EXCEPTION_LINES: usize = 4;

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
    /// What a reader looks for first: panics and failed assertions, with the lines behind them.
    pub remarkable: Vec<String>,
    /// How many lines are still taken as remarkable.
    follow: usize,
    /// Whether the exception is still to come that ends a traceback of Python.
    is_traceback: bool,
    /// Of cargo: failed tests of the test program that is being read.
    program: Vec<String>,
    /// Of unittest: tests that were run, until the line that says how many of them failed.
    ran: Option<u64>,
}

impl Reading {
    pub fn line(&mut self, line: &str) {
        let text = line.trim();
        if let Some(counts) = Counts::of_line(text) {
            self.counts.add(counts);
        }
        self.remark(line);
        self.cargo(text);
        self.unittest(text);
        self.node(text);
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

    /// The names come first, then the arguments that build and run the program that has them.
    fn cargo(&mut self, text: &str) {
        if text.starts_with("Running ") || text.starts_with("Doc-tests ") {
            self.program.clear();
        } else if let Some(name) =
            text.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.program.push(name.to_owned());
        } else if let Some(rest) = text.split_once(FAILED_PROGRAM).map(|(_, rest)| rest) {
            let package = rest.split('`').next().unwrap_or_default();
            let mut names = std::mem::take(&mut self.program);
            if names.is_empty() {
                // A program that was killed names no test.
                names.push(String::new());
            }
            let test = |name| FailedTest { name, package: package.to_owned() };
            self.failed.extend(names.into_iter().map(test));
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

    /// Each of node's counts is on a line of its own.
    fn node(&mut self, text: &str) {
        let number = |word: &str| text.strip_prefix(word).and_then(|rest| rest.parse::<u64>().ok());
        let passed = number("# pass ").unwrap_or(0);
        let failed = number("# fail ").or_else(|| number("# cancelled ")).unwrap_or(0);
        self.counts.add(Counts { passed, failed });
    }

    /// Keeps some lines from each panic, failed assertion and named failure on.
    fn remark(&mut self, line: &str) {
        let is_begin = ["panicked at", "FAIL: ", "ERROR: ", "not ok ", "Error: ", " ... FAILED"]
            .iter()
            .any(|sign| line.contains(sign))
            || line.starts_with("error");
        if is_begin {
            self.follow = FOLLOWING_LINES;
        }
        if line.starts_with(TRACEBACK) {
            self.is_traceback = self.follow > 0;
        } else if self.is_traceback && !line.starts_with(' ') {
            // What was raised is told behind all calls, of which there may be many.
            self.is_traceback = false;
            self.follow = self.follow.max(EXCEPTION_LINES);
        }
        if self.follow > 0 && self.remarkable.len() < REMARKABLE_MAX {
            self.follow -= 1;
            self.remarkable.push(line.to_owned());
        }
    }

    /// Tests of a program that was ended before cargo could say which it is.
    pub fn finish(&mut self) {
        for name in std::mem::take(&mut self.program) {
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
error: test failed, to rerun pass `-p x --test b`
     Running tests/c.rs (target/debug/deps/c-3)
test third ...
thread 'main' panicked at c.rs:1:1
error: test failed, to rerun pass `-p y --test c`
error: 2 targets failed:
    `-p x --test b`
    `-p y --test c`",
        );
        assert_eq!(reading.counts, Counts { passed: 4, failed: 2 });
        let expected =
            [("first", "-p x --test b"), ("second", "-p x --test b"), ("", "-p y --test c")];
        assert_eq!(names(&reading), expected);
        assert!(reading.remarkable.iter().any(|line| line.contains("c.rs:1:1")));
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
    fn the_exception_behind_a_long_traceback_is_kept() {
        let calls = "  File \"a.py\", line 1, in f\n    f()\n".repeat(20);
        let begin = "FAIL: test_x (__main__.A.test_x)\n---\nTraceback (most recent call last):\n";
        let text =
            format!("{begin}{calls}watched.Hang: waited for 'x'\nread: y\n{}", "z\n".repeat(9));
        let reading = read(&text);
        let kept = reading.remarkable.join("\n");
        assert!(kept.contains("watched.Hang: waited for 'x'\nread: y\nz\nz"), "{kept}");
        assert_eq!(reading.remarkable.len(), FOLLOWING_LINES + EXCEPTION_LINES, "{kept}");
        let other = read("Traceback (most recent call last):\n  f()\nqueue.Empty: 1");
        assert!(other.remarkable.is_empty(), "of a program that is tested");
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
    fn node_s_counts_are_added() {
        let reading = read("# tests 12\n# pass 7\n# fail 2\n# cancelled 1\n# skipped 2");
        assert_eq!(reading.counts, Counts { passed: 7, failed: 3 });
        assert_eq!(read("# pass the word\n# fail").counts, Counts::default());
    }

    #[test]
    fn other_lines_count_nothing() {
        assert_eq!(Counts::of_line("all passed, none failed"), None);
        assert_eq!(Counts::of_line("3 passed"), None);
        assert!(read("error: could not compile\nFAILED").failed.is_empty());
    }
}
