//! Output as it comes: `host: line`, kept apart by stream, on the terminal or in files.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Write};
use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;

use sapwood_command_line::exit::{Failure, StandardError};

/// What becomes of lines that come while commands run, where no folder gets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LiveLines {
    /// They are written to the standard streams.
    Written,
    /// They are left to what is written at the end.
    Left,
}

/// What stands before a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostLabel {
    /// The host that it came from, or the hosts.
    Name,
    None,
}

impl HostLabel {
    /// The beginning of lines of these hosts.
    pub(super) fn of(self, hosts: &dyn Display) -> String {
        match self {
            Self::Name => format!("{hosts}: "),
            Self::None => String::new(),
        }
    }
}

/// Where live output goes.
pub(super) struct Printer {
    lines: LiveLines,
    pub(super) label: HostLabel,
    /// Folders that get a file for each host, by stream.
    pub(super) folders: [Option<PathBuf>; 2],
    begun: BTreeSet<(usize, u32)>,
    output: BufWriter<std::io::Stdout>,
    errors: BufWriter<StandardError>,
}

impl Printer {
    /// # Errors
    /// A folder that cannot be made, or one for both outputs.
    pub(super) fn new(
        lines: LiveLines,
        label: HostLabel,
        folders: [Option<PathBuf>; 2],
    ) -> Result<Self, Failure> {
        for (option, folder) in ["--outdir", "--errdir"].iter().zip(&folders) {
            let Some(folder) = folder else { continue };
            std::fs::create_dir_all(folder).map_err(|error| {
                let told = folder.display();
                Failure::usage(match error.kind() {
                    ErrorKind::AlreadyExists => {
                        format!("'{told}' is no folder: give {option} a folder or a new name")
                    }
                    _ => format!(
                        "cannot make the folder '{told}': {error}; give {option} one that can be \
                         made or is there"
                    ),
                })
            })?;
        }
        if let [Some(out), Some(err)] = &folders
            && out.canonicalize().is_ok_and(|out| err.canonicalize().is_ok_and(|err| err == out))
        {
            let folder = out.display();
            return Err(Failure::usage(format!(
                "'{folder}' is named by --outdir and --errdir: name two folders"
            )));
        }
        Ok(Self {
            lines,
            label,
            folders,
            begun: BTreeSet::new(),
            output: BufWriter::with_capacity(1 << 16, std::io::stdout()),
            errors: BufWriter::with_capacity(1 << 16, StandardError),
        })
    }

    /// Takes a part of one host's output; `which` is 0 for standard output, 1 for standard error.
    ///
    /// # Errors
    /// What the system says of the writing.
    pub(super) fn take(
        &mut self,
        host: &str,
        rank: u32,
        which: usize,
        part: &[u8],
    ) -> Result<(), Failure> {
        if self.folders[which].is_some() {
            return self.append(host, rank, which, part);
        }
        if self.lines == LiveLines::Left {
            return Ok(());
        }
        let label = self.label.of(&host);
        let written = match which {
            0 => write_lines(&mut self.output, &label, part),
            _ => write_lines(&mut self.errors, &label, part),
        };
        written.map_err(|error| Failure::output(&error))
    }

    /// Makes what was taken visible.
    ///
    /// # Errors
    /// As [`Printer::take`].
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        let flushed = self.errors.flush().and_then(|()| self.output.flush());
        flushed.map_err(|error| Failure::output(&error))
    }

    /// Standard output or standard error, in the order of what was written before.
    pub(super) fn stream(&mut self, which: usize) -> &mut dyn Write {
        if which == 0 { &mut self.output } else { &mut self.errors }
    }

    /// Makes a file for a host that wrote nothing, too.
    ///
    /// # Errors
    /// As [`Printer::take`].
    pub(super) fn begin(&mut self, host: &str, rank: u32) -> Result<(), Failure> {
        for which in 0..2 {
            if self.folders[which].is_some() {
                self.append(host, rank, which, &[])?;
            }
        }
        Ok(())
    }

    fn append(&mut self, host: &str, rank: u32, which: usize, part: &[u8]) -> Result<(), Failure> {
        let Some(folder) = &self.folders[which] else { return Ok(()) };
        let path = folder.join(host);
        let is_first = self.begun.insert((which, rank));
        // To open one would wait for its reader, and no signal would end that.
        if is_first && path.metadata().is_ok_and(|metadata| metadata.file_type().is_fifo()) {
            return Err(Failure::own(&format!(
                "cannot write to {}: it is a pipe; remove it or name another folder",
                path.display()
            )));
        }
        // One file is open at a time: there may be more hosts than descriptors.
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(is_first).append(!is_first);
        let written = options.open(&path).and_then(|mut file: File| file.write_all(part));
        written
            .map_err(|error| Failure::own(&format!("cannot write to {}: {error}", path.display())))
    }
}

/// Writes lines, each after a label; a part of a line becomes a line.
pub(super) fn write_lines(target: &mut dyn Write, label: &str, part: &[u8]) -> std::io::Result<()> {
    for line in part.split_inclusive(|&byte| byte == b'\n') {
        let written = target.write_all(label.as_bytes()).and_then(|()| target.write_all(line));
        match written {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            written => written?,
        }
        if !line.ends_with(b"\n") {
            target.write_all(b"\n")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_the_host_before_it() {
        let mut text = Vec::new();
        write_lines(&mut text, "n1: ", b"a\n\nb\0").unwrap();
        assert_eq!(text, b"n1: a\nn1: \nn1: b\0\n");
    }
}
