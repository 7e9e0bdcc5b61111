//! The back-end process of `sapwood top` on each host: it reads what the kernel tells and answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sapwood::{BackEnd, Error, Event, FIRST_TAG, Received, StreamId, Tag, Values, ValuesRef, Wave};
use sapwood_topology::NodeSet;

use super::reading::Reading;
use sapwood_command_line::exit::Failure;

/// The hidden argument with which this program is such an agent.
pub const AGENT: &str = "top-agent";

/// Down: `%s` the folder of `proc` and `sys`, `%s` the hosts, folded, or nothing if the folder is
/// the same for all. Rates count from then on.
pub(crate) const BEGIN: Tag = FIRST_TAG;
/// Down: `%uld` wave. The answer is `%alf`, one number for each metric.
pub(crate) const ASK: Tag = FIRST_TAG + 1;

/// What stands for the host's name in the folder.
pub(crate) const HOST_MARK: &str = "%h";

/// The values of [`BEGIN`].
pub(crate) fn begin(root: &str, hosts: &NodeSet) -> Values {
    let hosts = if root.contains(HOST_MARK) { hosts.to_string() } else { String::new() };
    Values::new().string(root).string(hosts)
}

/// Serves until the network ends.
///
/// # Errors
/// When the tree cannot be joined, or fails.
pub fn run() -> Result<ExitCode, Failure> {
    let mut back_end = BackEnd::attach()?;
    let mut agent = Agent { rank: back_end.rank(), watched: BTreeMap::new() };
    loop {
        match agent.turn(&mut back_end) {
            Err(Error::Ended { .. }) => return Ok(ExitCode::SUCCESS),
            turned => turned?,
        }
    }
}

struct Agent {
    rank: u32,
    /// The front-ends that watch, by stream.
    watched: BTreeMap<StreamId, Watched>,
}

/// What a watcher was told last.
struct Watched {
    root: PathBuf,
    before: Reading,
}

impl Agent {
    fn turn(&mut self, back_end: &mut BackEnd) -> Result<(), Error> {
        let received = back_end.recv()?;
        let mut asked = BTreeMap::new();
        self.take(&received, &mut asked)?;
        // A host that hung for a while has several questions waiting, none of which is waited for
        // but the last one.
        while let Some(received) = back_end.try_recv()? {
            self.take(&received, &mut asked)?;
        }
        while let Some(event) = back_end.next_event() {
            if let Event::StreamClosed { stream } = event {
                self.watched.remove(&stream);
            }
        }
        for (stream, wave) in asked {
            self.answer(back_end, stream, wave)?;
        }
        back_end.flush()
    }

    fn take(
        &mut self,
        received: &Received,
        asked: &mut BTreeMap<StreamId, Wave>,
    ) -> Result<(), Error> {
        let values = received.values();
        match received.tag() {
            BEGIN => {
                let root = self.root(values)?;
                let before = Reading::take(&root);
                self.watched.insert(received.stream, Watched { root, before });
            }
            ASK => {
                asked.insert(received.stream, values.scalar(0)?);
            }
            _ => {}
        }
        Ok(())
    }

    fn root(&self, values: ValuesRef<'_>) -> Result<PathBuf, Error> {
        let (root, hosts) = (values.string(0)?, values.string(1)?);
        // Names that do not fold leave the mark as it is, and nothing is found there.
        let hosts: NodeSet = hosts.parse().unwrap_or_default();
        let name = hosts.iter().nth(self.rank as usize);
        Ok(Path::new(&root.replace(HOST_MARK, name.as_deref().unwrap_or(HOST_MARK))).to_path_buf())
    }

    fn answer(
        &mut self,
        back_end: &mut BackEnd,
        stream: StreamId,
        wave: Wave,
    ) -> Result<(), Error> {
        let Some(watched) = self.watched.get_mut(&stream) else { return Ok(()) };
        let now = Reading::take(&watched.root);
        let metrics = now.metrics_since(&watched.before);
        watched.before = now;
        match back_end.send_in_wave(stream, wave, ASK, metrics.to_vec()) {
            // The stream was closed, or the wave is over: the answer is not waited for.
            Err(Error::Misuse(_)) => Ok(()),
            sent => sent,
        }
    }
}
