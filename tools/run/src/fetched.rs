//! How much of an output has come from the hosts that wrote it, and what is said where that is not
//! all: [`Fetched`].

use super::protocol::SPOOL_BYTES_MAX;

/// What has come of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fetched {
    /// From its begin.
    pub(super) bytes: u64,
    pub(super) end: FetchEnd,
}

/// Why no more has come from the last host that was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FetchEnd {
    /// It has no more of it.
    Told,
    /// It is gone.
    Lost,
    /// It is there, and says nothing.
    Silent,
}

impl Fetched {
    /// Whether no more was kept than the first GiB, as the pages say.
    pub(super) fn is_at_limit(self) -> bool {
        self.end == FetchEnd::Told && self.bytes >= SPOOL_BYTES_MAX
    }

    /// The line on an output of this length that these hosts wrote; none if it is all there.
    pub(super) fn lack(self, nodes: &str, length: u64) -> Option<String> {
        let bytes = self.bytes;
        if bytes >= length {
            return None;
        }
        let cut = format!("{nodes}: output cut: {bytes} of {length} bytes kept");
        Some(match self.end {
            FetchEnd::Told if self.is_at_limit() => {
                format!("{cut}; use --live or --outdir for all of it")
            }
            FetchEnd::Told => format!(
                "{cut}, since neither the disk of TMPDIR (or /tmp) nor the memory of these hosts \
                 had room; use --live or --outdir for all of it"
            ),
            FetchEnd::Lost if bytes == 0 => {
                format!("{nodes}: the output ({length} bytes) was lost with its hosts")
            }
            FetchEnd::Lost => {
                format!(
                    "{nodes}: output cut: {bytes} of {length} bytes came before its hosts were lost"
                )
            }
            FetchEnd::Silent => {
                format!("{nodes}: output cut: {bytes} of {length} bytes came; its hosts are silent")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacking_is_told_with_its_cause() {
        let lack = |bytes, end, length| Fetched { bytes, end }.lack("n[1-2]", length);
        let gibi = SPOOL_BYTES_MAX;
        for end in [FetchEnd::Told, FetchEnd::Lost, FetchEnd::Silent] {
            assert_eq!((lack(0, end, 0), lack(7, end, 7)), (None, None));
        }
        for (bytes, end, length, words) in [
            (gibi, FetchEnd::Told, gibi + 1, "bytes kept; use --live"),
            (
                3,
                FetchEnd::Told,
                7,
                "output cut: 3 of 7 bytes kept, since neither the disk of TMPDIR",
            ),
            (
                0,
                FetchEnd::Told,
                7,
                "output cut: 0 of 7 bytes kept, since neither the disk of TMPDIR",
            ),
            (0, FetchEnd::Lost, 7, "the output (7 bytes) was lost with its hosts"),
            (3, FetchEnd::Lost, 7, "3 of 7 bytes came before its hosts were lost"),
            (3, FetchEnd::Silent, 7, "3 of 7 bytes came; its hosts are silent"),
        ] {
            let said = lack(bytes, end, length).expect("it is not all there");
            assert!(said.starts_with("n[1-2]: ") && said.contains(words), "{said}");
        }
    }
}
