//! A leaf: the back-end process that serves some MPI ranks of this machine.
//!
//! It reads the tables of its ranks only when the front-end asks, and answers each question with
//! one packet, so that the program is not disturbed between questions.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use sapwood::{BackEnd, Error, FIRST_TAG, Received, Tag, Values, Wave};
use sapwood_report::nanoseconds;

use super::analysis::{Head, Moments};
use super::freeze::{FREEZE, FreezeQuestion};
use super::places::PlaceQuestion;
use super::presence::Attachable;
use super::rank_control::ControlQuestion;
use super::scope::{SCOPE, ScopeQuestion};
use super::stack_reader::StackReader;
use super::standing::STANDING;
use super::tables::Tables;
use super::tallies;
use super::tool_rank::ToolRank;
use super::waits::{WAITS, WaitsQuestion};
use sapwood_command_line::exit::{Failure, complain};

/// The hidden argument with which this program is a leaf; the base of the leaves' names, the number
/// of leaves on each host and the path of the shim follow.
pub const LEAF: &str = "mpi-leaf";

/// Asks for a round: `%ud` number of MPI ranks, 0 if it is not known, `%uld` wave to answer in,
/// `%uld` nanoseconds from which on an activity is long. The answer is a
/// [`sapwood_profile::Round`].
pub(crate) const ROUND: Tag = FIRST_TAG;
/// Asks for the ranks' own profiles: the same values. The answer is
/// [`sapwood_profile::RankRows`].
pub(crate) const ROWS: Tag = FIRST_TAG + 1;

/// Asks for the ranks' call stacks: [`super::stack_reader::question`]. The answer is
/// [`sapwood_report::stacks::MergedStacks`].
pub(crate) const STACKS: Tag = FIRST_TAG + 8;
/// Asks which ranks a leaf has, and which have been started: a [`PlaceQuestion`]. The answer is a
/// [`Place`](super::places::Place).
pub(crate) const PLACE: Tag = FIRST_TAG + 20;

/// The number of a leaf among those of its host, where `bindings/mpi/world` starts it.
const NUMBER_VARIABLE: &str = "SAPWOOD_MPI_LEAF";
/// The hosts of the job in the order of their leaves, where each of several has ranks of the tool:
/// for these ranks (`bindings/mpi/world`) and for their leaves.
pub(crate) const HOSTS_VARIABLE: &str = "SAPWOOD_MPI_WORLD_HOSTS";
/// Asks for a round of a running program: the same values, and `%uld` the wave that the front-end
/// has whole, or the largest number for none. The answer is a round or a change of that wave's.
pub(crate) const LIVE: Tag = FIRST_TAG + 2;
/// Settings and what is known of ends: [`super::rank_control::ControlQuestion`]. The answer is a
/// [`sapwood_profile::RankReport`].
pub(crate) const CONTROL: Tag = FIRST_TAG + 3;
/// The latest result for the program. There is no answer.
pub(crate) const ADVICE: Tag = FIRST_TAG + 4;
/// Asks for iterations on this stream, now and whenever one is complete. Each answer is a
/// [`sapwood_profile::Round`].
pub(crate) const MARKS: Tag = FIRST_TAG + 5;
/// In the place of a base when there is none.
pub(crate) const NO_BASE: Wave = Wave::MAX;

/// A leaf with nothing to do looks after its ranks as often as this.
const IDLE_TURN: Duration = Duration::from_secs(60);

/// The name at which a leaf waits for its ranks.
pub(crate) fn name(base: &str, leaf: u32) -> String {
    format!("{base}-{leaf}")
}

/// The values of a question.
pub(crate) fn question(world_size: u32, wave: Wave, long: Duration) -> Values {
    Values::new().scalar(world_size).scalar(wave).scalar(nanoseconds(long))
}

/// Serves until the network ends.
///
/// # Errors
/// When the tree cannot be joined, or the leaf's name is taken.
pub fn run(arguments: &[OsString]) -> Result<ExitCode, Failure> {
    let [base, per_host, shim, adopted @ ..] = arguments else {
        return Err(Failure::usage("a leaf is started by 'sapwood mpi', not by hand"));
    };
    let base = base.to_string_lossy();
    let per_host = per_host.to_string_lossy().parse::<u32>().unwrap_or(1).max(1);
    // An allocation that ends with its program leaves some seconds for the last round.
    sapwood_launch::ignore_terminations();
    let mut back_end = BackEnd::attach()?;
    // Of a tree inside the job, whose leaves do not lie host by host in the order of their ranks.
    let number = std::env::var(NUMBER_VARIABLE).ok().and_then(|number| number.parse().ok());
    let number = number.unwrap_or_else(|| back_end.rank() % per_host);
    let tables = Tables::bind(&name(&base, number));
    let mut tables = tables.map_err(|error| Failure::own(&error))?;
    // One leaf looks for all of its host. Where the tool has ranks of each host, those of the
    // program are not numbered as in their launcher's variables.
    let is_of_each_host = std::env::var_os(HOSTS_VARIABLE).is_some();
    if adopted.is_empty() && number == 0 && !is_of_each_host {
        tables.expect_ranks_of(&base);
    }
    if adopted.is_empty() && !Path::new(shim).is_file() {
        complain(format_args!(
            "the shim '{}' is not on host {}, so that ranks there run unobserved; install \
             it there at the same path",
            Path::new(shim).display(),
            sapwood_launch::own_host_name()
        ));
    }
    if let Some(listener) = tables.listener() {
        back_end.watch(listener)?;
    }
    if std::env::var_os(NUMBER_VARIABLE).is_some() {
        tables.tool_rank = ToolRank::own();
        if let Some(tool) = tables.tool_rank.as_ref().and_then(ToolRank::descriptor) {
            back_end.watch(tool)?;
        }
    }
    if let [ranks_per_leaf, count, processes] = adopted {
        adopt(back_end.rank(), &mut tables, [ranks_per_leaf, count, processes]);
    }
    let mut moments = Moments::default();
    let mut stacks = StackReader::default();
    loop {
        match serve(&mut back_end, &mut tables, &mut moments, &mut stacks) {
            Ok(()) => {}
            Err(Error::Ended { .. }) => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Attaches to those of some processes whose ranks are this leaf's, by the rule of the shim. Which
/// processes these are is the front-end's choice; a leaf on another host would look for itself.
fn adopt(own: u32, tables: &mut Tables, words: [&OsString; 3]) {
    let [ranks_per_leaf, count, processes] = words.map(|word| word.to_string_lossy());
    let number = |text: &str| text.parse::<u32>().unwrap_or(1).max(1);
    let (ranks_per_leaf, count) = (number(&ranks_per_leaf), number(&count));
    for process in processes.split(',').filter_map(|process| process.parse().ok()) {
        let rank = Attachable::of(process);
        let rank = rank.filter(|rank| (rank.world_rank / ranks_per_leaf) % count == own);
        if let Some(rank) = rank {
            // Its end is seen when the front-end asks.
            tables.adopt(rank);
        }
    }
}

/// Answers what has been asked already, then waits for something to happen.
fn serve(
    back_end: &mut BackEnd,
    tables: &mut Tables,
    moments: &mut Moments,
    stacks: &mut StackReader,
) -> Result<(), Error> {
    while let Some(received) = back_end.try_recv()? {
        // A rank that has come or gone since belongs into the answer as such.
        look(back_end, tables);
        if received.tag() == STACKS {
            stacks.ask(back_end, &received, tables.processes())?;
            continue;
        }
        match answer(back_end, tables, moments, &received) {
            // The stream was closed, or the answer comes too late, while it was made.
            Ok(()) | Err(Error::Misuse(_)) => {}
            Err(error) => return Err(error),
        }
    }
    back_end.flush()?;
    if back_end.turn(tables.marks_wait().unwrap_or(IDLE_TURN))? {
        look(back_end, tables);
        stacks.look(back_end)?;
    }
    send_marks(back_end, tables)
}

/// Sends the iterations that are complete, if they were asked for.
fn send_marks(back_end: &mut BackEnd, tables: &mut Tables) -> Result<(), Error> {
    let Some((stream, world_size)) = tables.marks_stream else { return Ok(()) };
    for (wave, round) in tables.take_marks(world_size) {
        match back_end.send_in_wave(stream, wave, MARKS, round.encode()) {
            // The wave was given up, or the stream was closed.
            Ok(()) | Err(Error::Misuse(_)) => {}
            Err(error) => return Err(error),
        }
    }
    back_end.flush()
}

fn look(back_end: &mut BackEnd, tables: &mut Tables) {
    tables.look(|peer| {
        // A connection that is not watched is still looked at whenever the front-end asks.
        let _ = back_end.watch(peer);
    });
    if let Some(tool) = &mut tables.tool_rank
        && tool.look()
        && let Some(descriptor) = tool.descriptor()
    {
        // One that is not watched is still looked at whenever the front-end asks.
        let _ = back_end.unwatch(descriptor);
    }
}

fn answer(
    back_end: &mut BackEnd,
    tables: &mut Tables,
    moments: &mut Moments,
    received: &Received,
) -> Result<(), Error> {
    let values = received.values();
    let (seed, question) = (back_end.rank().into(), (received.tag(), values));
    let read = |head: Head| tables.profiles(head.world_size, head.long_ns);
    // Our own front-end asks: a question that cannot be read is answered by nothing.
    let Ok(answer) = moments.answer(question, seed, read) else { return Ok(()) };
    if let Some((wave, answer)) = answer {
        return back_end.send_in_wave(received.stream, wave, received.tag(), answer);
    }
    let (wave, answer) = match received.tag() {
        CONTROL => {
            let question = ControlQuestion::decode(values)?;
            (question.wave, tables.control(back_end.rank(), &question).encode())
        }
        WAITS => {
            let asked = WaitsQuestion::decode(values)?;
            (asked.question.wave, tables.waits(back_end.rank(), &asked).encode())
        }
        FREEZE => {
            let question = FreezeQuestion::decode(values)?;
            (question.clocks.wave, tables.freeze(back_end.rank(), &question).encode())
        }
        SCOPE => {
            let Some(question) = ScopeQuestion::decode(values)? else { return Ok(()) };
            (question.wave, tables.scope(&question).encode())
        }
        STANDING => {
            let (wave, world_size, long_ns) =
                (values.scalar(1)?, values.scalar(0)?, values.scalar(2)?);
            (wave, tables.standing(world_size, long_ns).encode())
        }
        ADVICE => return tables.advise(values),
        PLACE => {
            let Some(question) = PlaceQuestion::decode(values) else { return Ok(()) };
            let place = tables.place(&question);
            return back_end.send(received.stream, PLACE, place.encode());
        }
        MARKS => {
            tables.marks_stream = Some((received.stream, values.scalar(0)?));
            return Ok(());
        }
        tag => {
            let world_size = values.scalar::<u32>(0)?;
            let wave = values.scalar::<Wave>(1)?;
            let long_ns = values.scalar::<u64>(2)?;
            let answer = match tag {
                ROWS => tables.rows(world_size, long_ns).encode(),
                tallies::TALLIES | tallies::TALLY_ROWS => {
                    tallies::answer(tables, tag, world_size, values)?
                }
                LIVE => {
                    let base = Some(values.scalar::<Wave>(3)?).filter(|&base| base != NO_BASE);
                    tables.changes(world_size, long_ns, wave, base)
                }
                _ => tables.round(world_size, long_ns).encode(),
            };
            (wave, answer)
        }
    };
    back_end.send_in_wave(received.stream, wave, received.tag(), answer)
}
