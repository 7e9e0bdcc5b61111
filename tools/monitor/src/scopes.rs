//! Gathers the scopes of a run while the program runs and at its end, for `sapwood trace scope`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use sapwood::VisibleNetwork;
use sapwood_command_line::exit::Failure;
use sapwood_report::scope::{ScopeParts, ScopeRecord};

use super::collection::Collection;
use super::control::{ControlRequest, ScopeRequest};
use super::control_command;
use super::scope::{Gathering, NamedScope, ScopeWatch};
use super::watch::News;
use super::why::{WhyWishes, observed};

impl Collection {
    /// Opens the streams of scopes. A tree of which nothing is left has none.
    pub(crate) fn open_scopes(&mut self, scopes: &[NamedScope]) {
        for (number, named) in (0..).zip(scopes) {
            if let Ok(watch) = ScopeWatch::open(&self.network, number, named.clone()) {
                self.scopes.watches.push(watch);
            }
        }
    }

    /// How long the loop may wait before a scope is due.
    pub(crate) fn wait_for_scopes(&self, wait: Duration) -> Duration {
        let dues = self.scopes.watches.iter().filter_map(ScopeWatch::due);
        let waits = dues.map(|due| due.saturating_duration_since(Instant::now()));
        waits.fold(wait, Duration::min)
    }

    /// Asks those that are due; what has come since.
    pub(crate) fn take_scopes(&mut self, elapsed: Duration) -> Vec<ScopeRecord> {
        let mut records = Vec::new();
        for watch in &mut self.scopes.watches {
            while let Some(gathering) = watch.take() {
                records.push(ScopeRecord::of(&parts(&watch.named, elapsed, &gathering)));
            }
            watch.ask_if_due(self.world_size);
        }
        records
    }

    /// Gathers all for the last time.
    pub(crate) fn last_scopes(&mut self, elapsed: Duration, wait: Duration) {
        for mut watch in std::mem::take(&mut self.scopes.watches) {
            let gathered = watch.finish(self.world_size, wait);
            let last = gathered.len().saturating_sub(1);
            for (at, gathering) in gathered.iter().enumerate() {
                let parts = parts(&watch.named, elapsed, gathering);
                let parts = ScopeParts { is_last: at == last, ..parts };
                self.result.scopes.push(ScopeRecord::of(&parts));
            }
        }
    }
}

impl Collection {
    /// Begins a scope that another process asks for; its number.
    pub(crate) fn begin_scope(&mut self, named: NamedScope) -> Option<u32> {
        self.scopes.begin(&self.network, named, self.world_size)
    }

    /// Gathers again and ends what a request names; what has come of the one that it wants.
    pub(crate) fn serve_scopes(
        &mut self,
        request: &ControlRequest,
        elapsed: Duration,
    ) -> Option<ScopeRecord> {
        if let Some(number) = request.gather {
            self.scopes.gather(number, self.world_size);
        }
        if let Some(number) = request.end_scope {
            self.scopes.end(number);
        }
        let (named, gathering) = self.scopes.gathered(request.gathered?)?;
        Some(ScopeRecord::of(&parts(&named, elapsed, &gathering)))
    }
}

/// A record's parts; it is not the last one.
fn parts<'a>(named: &'a NamedScope, elapsed: Duration, gathering: &'a Gathering) -> ScopeParts<'a> {
    ScopeParts {
        name: &named.name,
        scope: &named.scope,
        elapsed,
        is_last: false,
        figures: &gathering.figures,
        missing_leaves: gathering.missing_leaves,
    }
}

/// Starts a program and gathers scopes of its events until it has ended: `tell` is given each
/// record. The code with which the program ended.
///
/// # Errors
/// As [`crate::run`].
pub fn scope(
    wishes: &WhyWishes,
    scopes: &[NamedScope],
    tell: &mut dyn FnMut(&ScopeRecord),
) -> Result<ExitCode, Failure> {
    let watched = observed(wishes, scopes, &mut |news| {
        if let News::Scope(record) = news {
            tell(record);
        }
    })?;
    let records = watched.collected.map(|collected| collected.scopes).unwrap_or_default();
    records.iter().for_each(tell);
    Ok(watched.end.exit_code())
}

/// How long a running program's ranks may take to answer.
const GATHER_TIME: Duration = Duration::from_secs(10);
/// Between two questions whether they have.
const PAUSE: Duration = Duration::from_millis(50);

/// Asks a run of `sapwood mpi` of this user for scopes: once, or as often as each says for a time.
/// `tell` is given each record.
///
/// # Errors
/// [`Failure`] when no run or more than one is there, it has no such ranks, or it does not answer.
pub fn scopes_of_running(
    name: Option<&str>,
    scopes: &[NamedScope],
    time: Option<Duration>,
    tell: &mut dyn FnMut(&ScopeRecord),
) -> Result<(), Failure> {
    let network = control_command::find(name)?;
    let end = time.map(|time| Instant::now() + time);
    let mut asked = Vec::new();
    for named in scopes {
        let scope = Some(ScopeRequest::of(named));
        let request = ControlRequest { scope, ..ControlRequest::default() };
        let reply = control_command::ask(&network, &request)?;
        if !reply.error.is_empty() {
            return Err(Failure::usage(reply.error));
        }
        let number = reply.scope_number.ok_or_else(|| {
            Failure::own(&"the tree of the run has ended: none of its leaves can be queried")
        })?;
        let every = named.every.filter(|_| time.is_some());
        let due = every.map(|every| Instant::now() + every);
        asked.push(AskedScope { number, every, due, awaited_since: Some(Instant::now()) });
    }
    loop {
        for one in &mut asked {
            one.step(&network, tell)?;
        }
        let is_over = end.is_none_or(|end| Instant::now() >= end);
        if is_over && asked.iter().all(|one| one.awaited_since.is_none()) {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    for one in &asked {
        let end_scope = Some(one.number);
        control_command::ask(&network, &ControlRequest { end_scope, ..ControlRequest::default() })?;
    }
    Ok(())
}

/// A scope that a running program was asked for.
struct AskedScope {
    number: u32,
    /// None for once.
    every: Option<Duration>,
    due: Option<Instant>,
    /// Since when its figures are awaited.
    awaited_since: Option<Instant>,
}

impl AskedScope {
    /// Takes what has come, and gathers again if it is time.
    fn step(
        &mut self,
        network: &VisibleNetwork,
        tell: &mut dyn FnMut(&ScopeRecord),
    ) -> Result<(), Failure> {
        if let Some(since) = self.awaited_since {
            let gathered = Some(self.number);
            let request = ControlRequest { gathered, ..ControlRequest::default() };
            let reply = control_command::ask(network, &request)?;
            match reply.scope {
                Some(record) => {
                    self.awaited_since = None;
                    tell(&record);
                }
                None if since.elapsed() > GATHER_TIME => {
                    return Err(Failure::own(&"the leaves did not answer in time"));
                }
                None => {}
            }
        }
        let (Some(due), Some(every)) = (self.due, self.every) else { return Ok(()) };
        let now = Instant::now();
        if now >= due && self.awaited_since.is_none() {
            let gather = Some(self.number);
            let request = ControlRequest { gather, ..ControlRequest::default() };
            control_command::ask(network, &request)?;
            self.awaited_since = Some(now);
            self.due = Some((due + every).max(now));
        }
        Ok(())
    }
}
