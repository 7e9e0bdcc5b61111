//! Several members that hand messages to each other, without any network.

use std::collections::VecDeque;

use sapwood_group::{
    Answer, Call, Config, Event, Input, Member, MemberId, Output, SECOND, TreeKind,
};

/// Members, which are called by their indexes.
pub(crate) struct Room {
    pub(crate) members: Vec<Member>,
    pub(crate) events: Vec<(usize, Event)>,
    queue: VecDeque<(usize, Input)>,
    pub(crate) now: u64,
}

impl Room {
    /// Members with these virtual nodes.
    pub(crate) fn new(names: &[&str]) -> Self {
        Self::with(names, &Config::default())
    }

    /// The same with settings.
    pub(crate) fn with(names: &[&str], config: &Config) -> Self {
        let mut room =
            Self { members: Vec::new(), events: Vec::new(), queue: VecDeque::new(), now: 1 };
        for (index, names) in names.iter().enumerate() {
            let names = names.parse().unwrap();
            let id = MemberId(index as u64 + 1);
            let config = Config { id, names, space: 100, measures: false, ..config.clone() };
            room.members.push(Member::new(config));
            let address = "0".into();
            room.give(index, if index == 0 { Input::Create } else { Input::Join { address } });
        }
        room
    }

    /// Gives an input, then all that follows from it, and a little time.
    pub(crate) fn give(&mut self, index: usize, input: Input) {
        self.queue.push_back((index, input));
        for _ in 0..400 {
            while let Some((to, input)) = self.queue.pop_front() {
                self.members[to].handle_input(self.now, input);
                while let Some(output) = self.members[to].poll_output() {
                    self.follow(to, output);
                }
            }
            self.now += 100_000;
            self.queue.extend((0..self.members.len()).map(|index| (index, Input::Wake)));
        }
    }

    fn follow(&mut self, from: usize, output: Output) {
        let id = self.members[from].id();
        match output {
            Output::Connect { member, address } => {
                let to = member.map_or(0, |member| member.0 as usize - 1);
                let address = member.is_none().then_some(address);
                let up = |member, address| Input::LinkUp { member, address };
                self.queue.push_back((to, up(id, None)));
                self.queue.push_back((from, up(MemberId(to as u64 + 1), address)));
            }
            Output::Send { to, message } => {
                self.queue.push_back((to.0 as usize - 1, Input::Message { from: id, message }));
            }
            Output::Wake(_) => {}
            Output::Event(event) => self.events.push((from, event)),
        }
    }

    pub(crate) fn call(&mut self, index: usize, request: u64, call: Call) {
        self.call_by(TreeKind::Adaptive, index, request, call);
    }

    pub(crate) fn call_by(&mut self, tree: TreeKind, index: usize, request: u64, call: Call) {
        let deadline = self.now + SECOND;
        self.give(index, Input::Call { request, tree, deadline, call });
    }

    /// How a call of a member has ended.
    pub(crate) fn answer(&self, index: usize, request: u64) -> Option<&Answer> {
        self.events.iter().find_map(|(at, event)| match event {
            Event::Answered(answered, answer) if (*at, *answered) == (index, request) => {
                Some(answer)
            }
            _ => None,
        })
    }
}
