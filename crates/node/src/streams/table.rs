//! The streams that are open at a node, by number.

use alloc::vec::Vec;

use sapwood_link::Outbox;
use sapwood_packet::StreamId;

use crate::streams::stream::Stream;
use crate::transform::offload::Jobs;

/// The streams that are open at a node.
#[derive(Debug)]
pub(crate) struct Streams {
    list: Vec<Stream>,
    /// Where in the list each is, by number.
    index: Vec<(StreamId, usize)>,
    /// The stream of the last packet: the next is likely to be on the same.
    last: usize,
    /// How many have waves with deadlines.
    timed: usize,
    /// The greatest number that one has ever had here.
    latest: StreamId,
    /// The number of the next stream that this front-end opens.
    pub(crate) next: StreamId,
    /// The first number that it must not give one, and how many it may open in all.
    pub(crate) end: (StreamId, u32),
    /// Filters at work elsewhere.
    pub(crate) jobs: Jobs,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            index: Vec::new(),
            last: 0,
            timed: 0,
            latest: 0,
            next: 1,
            end: (StreamId::MAX, StreamId::MAX - 1),
            jobs: Jobs::default(),
        }
    }
}

impl Streams {
    /// Where in the list a stream is.
    #[inline]
    pub(crate) fn find(&mut self, id: StreamId) -> Option<usize> {
        if self.list.get(self.last).is_some_and(|stream| stream.id == id) {
            return Some(self.last);
        }
        self.last = self.position(id)?;
        Some(self.last)
    }

    #[inline]
    pub(crate) fn get(&self, id: StreamId) -> Option<&Stream> {
        if let Some(stream) = self.list.get(self.last).filter(|stream| stream.id == id) {
            return Some(stream);
        }
        self.list.get(self.position(id)?)
    }

    /// Where in the list a stream is that was not the last.
    fn position(&self, id: StreamId) -> Option<usize> {
        let found = self.index.binary_search_by_key(&id, |&(id, _)| id).ok()?;
        Some(self.index[found].1)
    }

    /// A stream, and the jobs of all.
    pub(crate) fn with_jobs(&mut self, id: StreamId) -> Option<(&mut Stream, &mut Jobs)> {
        let at = self.find(id)?;
        Some((self.list.get_mut(at)?, &mut self.jobs))
    }

    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        let at = self.find(id)?;
        self.list.get_mut(at)
    }

    /// Ends the run at the end of the outbox to the parent. The streams of all that have ended keep
    /// them, before what is sent next.
    #[inline]
    pub(crate) fn record_runs(&mut self, outbox: &mut Outbox) {
        outbox.end_run();
        outbox.take_ended_runs(|run, bytes| {
            if let Some(stream) = self.get_mut(run.stream) {
                stream.sender.record_run(run, bytes);
            }
        });
    }

    #[inline]
    pub(crate) fn at(&mut self, index: usize) -> &mut Stream {
        &mut self.list[index]
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// The greatest number that a stream has ever had here: later ones open behind it.
    pub(crate) fn latest(&self) -> StreamId {
        self.latest
    }

    pub(crate) fn insert(&mut self, stream: Stream) -> usize {
        self.remove(stream.id);
        self.latest = self.latest.max(stream.id);
        if self.list.is_empty() {
            // Most back-ends have one stream, and a tree may have a million of them.
            self.list.reserve_exact(1);
            self.index.reserve_exact(1);
        }
        let at = self.index.partition_point(|&(id, _)| id < stream.id);
        self.index.insert(at, (stream.id, self.list.len()));
        self.timed += usize::from(stream.is_timed());
        self.list.push(stream);
        self.list.len() - 1
    }

    pub(crate) fn remove(&mut self, id: StreamId) {
        let Ok(found) = self.index.binary_search_by_key(&id, |&(id, _)| id) else { return };
        let (_, at) = self.index.remove(found);
        let removed = self.list.swap_remove(at);
        self.timed -= usize::from(removed.is_timed());
        if let Some(id) = self.list.get(at).map(|moved| moved.id)
            && let Some((_, position)) = self.index.iter_mut().find(|(other, _)| *other == id)
        {
            *position = at;
        }
    }

    /// Gives back memory that is not needed any more.
    pub(crate) fn reclaim(&mut self) {
        self.list.iter_mut().for_each(Stream::reclaim);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.list.iter()
    }

    /// Those whose waves have deadlines.
    pub(crate) fn timed(&self) -> impl Iterator<Item = &Stream> {
        let most = if self.timed == 0 { 0 } else { self.list.len() };
        self.list[..most].iter().filter(|stream| stream.is_timed())
    }
}
