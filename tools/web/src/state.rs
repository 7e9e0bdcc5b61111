//! What the server knows: the rounds, the browsers that follow them, and how the program stands.

use bytes::Bytes;
use sapwood_report::RoundRecord;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::bounds::bounded;
use crate::history::History;
use crate::{Control, Program};

/// Events that wait for one browser at most. A browser that reads more slowly loses rounds.
pub(crate) const BROWSER_QUEUE: usize = 16;
/// A round that was lost and one that says so.
const ROOM_FOR_ROUND: usize = 2;

/// State of the one thread that serves.
pub(crate) struct State {
    program: Program,
    control: Option<Control>,
    /// Rounds by time or on demand, and iterations of the program. Each have room of their own:
    /// many of one kind displace none of the other.
    rounds: History,
    iterations: History,
    browsers: Vec<Browser>,
    end: Option<String>,
    rounds_lost: u64,
}

/// One browser that follows.
struct Browser {
    sender: mpsc::Sender<Bytes>,
    lost: u64,
}

impl State {
    pub(crate) fn new(program: Program, control: Option<Control>) -> Self {
        Self {
            program,
            control,
            rounds: History::default(),
            iterations: History::default(),
            browsers: Vec::new(),
            end: None,
            rounds_lost: 0,
        }
    }

    /// What a browser is told first.
    fn about(&self) -> Value {
        json!({
            "command": self.program.command,
            "is_replay": self.program.is_replay,
            "has_control": self.control.is_some(),
            "end": self.end,
            "rounds_seen": self.rounds.seen(),
            "rounds_kept": self.rounds.kept(),
            "iterations_seen": self.iterations.seen(),
            "iterations_kept": self.iterations.kept(),
        })
    }

    /// The kept records as pieces of one JSON document: those behind a sequence, all if there is
    /// none.
    pub(crate) fn records(&self, after: Option<u64>) -> impl Iterator<Item = Bytes> {
        let head = format!(r#"{{"about":{},"rounds":["#, self.about());
        let comma = Bytes::from_static(b",");
        let kept = self.rounds.after(after).chain(self.iterations.after(after));
        let rounds = kept.enumerate().flat_map(move |(at, text)| {
            [(at > 0).then(|| comma.clone()), Some(text.clone())].into_iter().flatten()
        });
        std::iter::once(Bytes::from(head)).chain(rounds).chain([Bytes::from_static(b"]}")])
    }

    /// Takes a round in and hands it on to all browsers.
    pub(crate) fn publish(&mut self, mut record: RoundRecord, published_ms: f64) {
        // Rounds and iterations are both numbered from 0: the order in which they came is unique.
        let sequence = self.rounds.seen() + self.iterations.seen();
        let text = bounded(&mut record, sequence, published_ms);
        let event = Bytes::from(format!("event: round\ndata: {text}\n\n"));
        // The text again, without a copy.
        let head = event.len() - text.len() - "\n\n".len();
        let is_iteration = record.iteration.is_some();
        let history = if is_iteration { &mut self.iterations } else { &mut self.rounds };
        history.add(sequence, event.slice(head..head + text.len()));
        let rounds_lost = &mut self.rounds_lost;
        self.browsers.retain_mut(|browser| {
            if browser.sender.capacity() < ROOM_FOR_ROUND {
                browser.lost += 1;
                *rounds_lost += 1;
                return !browser.sender.is_closed();
            }
            let lost = std::mem::take(&mut browser.lost);
            let told = lost == 0 || browser.sender.try_send(event_of("lost", &json!(lost))).is_ok();
            told && browser.sender.try_send(event.clone()).is_ok()
        });
    }

    /// A new browser that follows. It ends at once where the program has ended and tells so.
    pub(crate) fn follow(&mut self) -> mpsc::Receiver<Bytes> {
        let (sender, receiver) = mpsc::channel(BROWSER_QUEUE);
        let _ = sender.try_send(Bytes::from_static(b"retry: 1000\n\n"));
        let _ = sender.try_send(event_of("about", &self.about()));
        match &self.end {
            Some(end) => drop(sender.try_send(event_of("end", &json!(end)))),
            None => self.browsers.push(Browser { sender, lost: 0 }),
        }
        receiver
    }

    /// Tells all browsers that the program has ended. No further round comes.
    pub(crate) fn end(&mut self, how: String) {
        let event = event_of("end", &json!(how));
        for browser in std::mem::take(&mut self.browsers) {
            let _ = browser.sender.try_send(event.clone());
        }
        self.end = Some(how);
    }

    /// Keeps connections open that proxies would close, and notices browsers that have gone.
    pub(crate) fn keep_alive(&mut self) {
        self.browsers.retain(|browser| {
            let _ = browser.sender.try_send(Bytes::from_static(b":\n\n"));
            !browser.sender.is_closed()
        });
    }

    /// Asks for a change of what the ranks do.
    pub(crate) fn control(&self, order: Value) -> Result<(), String> {
        match &self.control {
            Some(_) if self.end.is_some() => Err("the program has ended".to_owned()),
            Some(control) => control(order),
            None => Err("nothing can be changed here".to_owned()),
        }
    }

    /// Rounds that did not reach a browser.
    pub(crate) fn rounds_lost(&self) -> u64 {
        self.rounds_lost
    }
}

fn event_of(name: &str, data: &Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}
