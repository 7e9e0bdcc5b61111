//! Back-ends that another manager starts, seen from the front-end: the join file for them, their
//! deadline, and the missing ones.
//!
//! The other end is `join`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sapwood_launch::{JOIN_VARIABLE, quoted};
use sapwood_node::Event;
use sapwood_packet::{Rank, RankSet};
use sapwood_runtime::{KEY_VARIABLE, RANK_VARIABLE};
use sapwood_transport::Key;

#[cfg(doc)]
use crate::NetworkBuilder;
use crate::draft::Draft;
use crate::error::file_error;
use crate::{Error, Network, Program, Result, StartFailure};

/// How long back-ends may take to join by default: they may have to wait in a queue.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Terms on which another manager starts the back-ends: see [`NetworkBuilder::attach`].
#[derive(Clone, Debug)]
pub struct Attach {
    join_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    port: u16,
    timeout: Duration,
}

impl Default for Attach {
    fn default() -> Self {
        Self { join_file: None, key_file: None, port: 0, timeout: TIMEOUT }
    }
}

impl Attach {
    /// Back-ends have a minute to join, at any free port, with a random key of this network.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Once the tree stands, what back-ends need is written to this file, in the place of one that
    /// was there, and the key to a file of its name and `.key`; both have mode 0600 and go when the
    /// network closes. A back-end with `SAPWOOD_JOIN=FILE` in its environment reads them; it may
    /// have been started before.
    #[must_use]
    pub fn join_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.join_file = Some(path.into());
        self
    }

    /// The network's key is read from this file of mode 0600 rather than drawn, for back-ends that
    /// cannot read a file of the front-end's: with a port, they only need the front-end's name.
    #[must_use]
    pub fn key_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.key_file = Some(path.into());
        self
    }

    /// The port at which the front-end takes connections; 0 for any that is free.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// How long the back-ends may take to join.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub(crate) fn front_end_port(&self) -> u16 {
        self.port
    }

    /// The network's key.
    pub(crate) fn key(&self) -> Result<Key> {
        Ok(match &self.key_file {
            Some(path) => Key::from_file(path)?,
            None => Key::generate()?,
        })
    }

    /// What the manager is to run, for this rank or for one that it gives by a variable of its own,
    /// as a shell would read it.
    pub(crate) fn command(&self, rank: Option<Rank>, program: Option<&Program>) -> String {
        let place = match &self.join_file {
            Some(path) => quoted(&absolute(path).to_string_lossy()),
            None => format!("tcp:FRONT-END:{}", self.port),
        };
        let mut line = format!("{JOIN_VARIABLE}={place}");
        if let Some(rank) = rank {
            line += &format!(" {RANK_VARIABLE}={rank}");
        }
        if let (None, Some(key)) = (&self.join_file, &self.key_file) {
            line += &format!(" {KEY_VARIABLE}=file:{}", quoted(&absolute(key).to_string_lossy()));
        }
        let Some(Program(program)) = program else { return line + " (a program that attaches)" };
        for word in std::iter::once(program.program.to_string_lossy().into_owned())
            .chain(program.arguments.iter().cloned())
        {
            line.push(' ');
            line += &quoted(&word);
        }
        line
    }
}

/// The path as every process finds it, wherever it runs.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// The files that tell back-ends where to join; dropping this removes them.
#[derive(Debug)]
pub(crate) struct JoinFile {
    path: PathBuf,
    key_path: PathBuf,
}

impl JoinFile {
    fn new(path: &Path) -> Self {
        let mut key_path = path.as_os_str().to_owned();
        key_path.push(".key");
        Self { path: path.to_path_buf(), key_path: key_path.into() }
    }
}

impl Drop for JoinFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(&self.key_path);
    }
}

impl Network {
    /// Writes the join file, and waits until all back-ends have joined or the time is over.
    pub(crate) fn await_leaves(&mut self, terms: &Attach, allow_missing: bool) -> Result<()> {
        if let Some(path) = &terms.join_file {
            self.join_file = Some(self.write_join_file(&absolute(path))?);
        }
        let count = self.topology.back_end_count();
        let come = self.wait_for_back_ends(count.into(), terms.timeout);
        self.everyone = self.everyone().ranks().clone();
        match come {
            Err(Error::Timeout { .. }) => {}
            other => return other,
        }
        let everyone = RankSet::range(0, count.saturating_sub(1));
        let waited = terms.timeout.as_secs_f64();
        let absent = everyone.difference(self.everyone.as_ref());
        let failures = absent.iter().map(|rank| StartFailure {
            rank,
            text: format!("no process has attached under this rank within {waited} s"),
        });
        let failures: Vec<StartFailure> = failures.collect();
        if !allow_missing {
            return Err(Error::Start(failures));
        }
        let mut shared = self.shared.borrow_mut();
        for StartFailure { rank, text } in failures {
            shared.events.push_back(Event::StartFailed { rank, text });
        }
        Ok(())
    }

    /// The key first: a process that finds the join file must find the key, too.
    fn write_join_file(&self, path: &Path) -> Result<JoinFile> {
        let file = JoinFile::new(path);
        // A file left by a front-end that was killed is replaced.
        let draft = Draft::of(&file.key_path);
        self.key.write_file(draft.path())?;
        draft.put_in_place().map_err(|error| file_error(&file.key_path, error.to_string()))?;
        self.rewrite_attach_file(&file.path, &file.key_path)?;
        Ok(file)
    }
}
