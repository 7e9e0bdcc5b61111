//! A leaf: the back-end process that serves some MPI ranks of this machine.
//!
//! It reads the tables of its ranks only when the front-end asks, and answers each question with
//! one packet, so that the program is not disturbed between questions.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use sapwood::{BackEnd, Error, FIRST_TAG, Received, Tag, Values, Wave};

use super::tables::Tables;
use sapwood_command_line::exit::Failure;

/// The hidden argument with which this program is a leaf; the base of the leaves' names follows.
pub const LEAF: &str = "mpi-leaf";

/// Asks for a round: `%ud` number of MPI ranks, 0 if it is not known, `%uld` wave to answer in,
/// `%uld` nanoseconds from which on an activity is long. The answer is a
/// [`sapwood_profile::Round`].
pub(crate) const ROUND: Tag = FIRST_TAG;
/// Asks for the ranks' own profiles: the same values. The answer is
/// [`sapwood_profile::RankRows`].
pub(crate) const ROWS: Tag = FIRST_TAG + 1;

/// A leaf with nothing to do looks after its ranks as often as this.
const IDLE_TURN: Duration = Duration::from_secs(60);

/// The name at which a leaf waits for its ranks.
pub(crate) fn name(base: &str, leaf: u32) -> String {
    format!("{base}-{leaf}")
}

/// The values of a question.
pub(crate) fn question(world_size: u32, wave: Wave, long: Duration) -> Values {
    let long_ns = u64::try_from(long.as_nanos()).unwrap_or(u64::MAX);
    Values::new().scalar(world_size).scalar(wave).scalar(long_ns)
}

/// Serves until the network ends.
///
/// # Errors
/// When the tree cannot be joined, or the leaf's name is taken.
pub fn run(arguments: &[OsString]) -> Result<ExitCode, Failure> {
    let Some(base) = arguments.first().and_then(|base| base.to_str()) else {
        return Err(Failure::usage("a leaf is started by 'sapwood mpi', not by hand"));
    };
    let mut back_end = BackEnd::attach()?;
    let tables = Tables::bind(&name(base, back_end.rank()));
    let mut tables = tables.map_err(|error| Failure::own(&error))?;
    if let Some(listener) = tables.listener() {
        back_end.watch(listener)?;
    }
    loop {
        match serve(&mut back_end, &mut tables) {
            Ok(()) => {}
            Err(Error::Ended { .. }) => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Answers what has been asked already, then waits for something to happen.
fn serve(back_end: &mut BackEnd, tables: &mut Tables) -> Result<(), Error> {
    while let Some(received) = back_end.try_recv()? {
        // A rank that has come or gone since belongs into the answer as such.
        look(back_end, tables);
        match answer(back_end, tables, &received) {
            // The stream was closed, or the answer comes too late, while it was made.
            Ok(()) | Err(Error::Misuse(_)) => {}
            Err(error) => return Err(error),
        }
    }
    back_end.flush()?;
    if back_end.turn(IDLE_TURN)? {
        look(back_end, tables);
    }
    Ok(())
}

fn look(back_end: &mut BackEnd, tables: &mut Tables) {
    tables.look(|peer| {
        // A connection that is not watched is still looked at whenever the front-end asks.
        let _ = back_end.watch(peer);
    });
}

fn answer(back_end: &mut BackEnd, tables: &mut Tables, received: &Received) -> Result<(), Error> {
    let values = received.values();
    let world_size = values.scalar::<u32>(0)?;
    let wave = values.scalar::<Wave>(1)?;
    let long_ns = values.scalar::<u64>(2)?;
    let answer = match received.tag() {
        ROWS => tables.rows(world_size, long_ns).encode(),
        _ => tables.round(world_size, long_ns).encode(),
    };
    back_end.send_in_wave(received.stream, wave, received.tag(), answer)
}
