//! The view in the terminal (`--live`): rounds as they come, or those of a finished run.
//!
//! The program goes on to write to the terminal: the view keeps its lower two thirds, and what the
//! program writes scrolls above. A replay has the whole terminal. Keys are the view's: a program
//! whose input is the terminal gets an empty one.

mod sheets;
mod view;
mod waits;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use ratatui_core::terminal::Terminal;
use sapwood_command_line::colour::ColourOption;
use sapwood_command_line::exit::Failure;
use sapwood_report::RoundRecord;
use sapwood_terminal::{Place, Screen};

pub(crate) use self::sheets::Kind;
use self::view::Action;
pub(crate) use self::view::View;
use super::recording::Recording;

/// Between two rounds of a replay that plays.
const PLAY_INTERVAL: Duration = Duration::from_millis(250);
/// How long a replay waits for a key.
const KEY_TIMEOUT: Duration = Duration::from_secs(60);

/// A view on a terminal.
pub(crate) struct Live {
    terminal: Terminal<Screen>,
    view: View,
    /// The latest round and the one before it.
    rounds: [Option<RoundRecord>; 2],
}

impl Live {
    /// Takes the lower part of the terminal over.
    ///
    /// # Errors
    /// The system's, if there is none.
    pub(crate) fn open(view: View) -> std::io::Result<Self> {
        Self::on(Screen::of_terminal(Place::Below)?, view)
    }

    fn on(screen: Screen, view: View) -> std::io::Result<Self> {
        let terminal = Terminal::new(screen)?;
        let mut live = Self { terminal, view, rounds: [None, None] };
        live.draw();
        Ok(live)
    }

    /// The screen, of which keys come.
    pub(crate) fn screen(&self) -> &Screen {
        self.terminal.backend()
    }

    /// Shows a round, unless an older one is held.
    pub(crate) fn show(&mut self, record: RoundRecord) {
        if !self.view.is_held() {
            self.rounds = [Some(record), self.rounds[0].take()];
            self.draw();
        }
    }

    /// Does what was pressed since the last call; gives whether the view is to go away.
    pub(crate) fn react(&mut self) -> bool {
        let mut is_stale = self.terminal.backend_mut().was_resized();
        let Some(keys) = self.terminal.backend_mut().keys() else { return true };
        for key in keys {
            match self.view.press(key) {
                Some(Action::Quit) => return true,
                Some(Action::Redraw | Action::Step(_)) => is_stale = true,
                None => {}
            }
        }
        if is_stale {
            self.draw();
        }
        false
    }

    fn draw(&mut self) {
        let [record, before] = &self.rounds;
        let view = &mut self.view;
        // A terminal that cannot be drawn on has gone, which is noticed by its keys.
        let _ = self.terminal.draw(|frame| {
            view.draw(record.as_ref(), before.as_ref(), frame.buffer_mut());
        });
    }
}

/// Shows a finished run in the terminal, until the user ends it.
///
/// # Errors
/// [`Failure`] if there is no terminal, or a round cannot be read.
pub(crate) fn replay(
    title: &str,
    recording: Recording,
    colour: ColourOption,
) -> Result<ExitCode, Failure> {
    let mut index = recording.index()?;
    let failed = |error: std::io::Error| {
        Failure::usage(format!("--live needs a terminal: {error}; without it, a page is served"))
    };
    let screen = Screen::of_terminal(Place::Whole).map_err(failed)?;
    let view = View::new(title.to_owned(), colour.is_wanted_on(screen.input()));
    let mut live = Live::on(screen, view).map_err(failed)?;
    let last = index.rounds() - 1;
    let mut at = last;
    let mut shown = None;
    let mut played = Instant::now();
    loop {
        if shown != Some(at) {
            let before = at.checked_sub(1).map(|before| index.read(before)).transpose()?;
            live.rounds = [Some(index.read(at)?), before];
            live.view.at = Some((at + 1, last + 1));
            live.draw();
            shown = Some(at);
        }
        let timeout = if live.view.is_playing { PLAY_INTERVAL } else { KEY_TIMEOUT };
        live.screen().wait(timeout).map_err(failed)?;
        if live.terminal.backend_mut().was_resized() {
            live.draw();
        }
        let Some(keys) = live.terminal.backend_mut().keys() else { return Ok(ExitCode::SUCCESS) };
        for key in keys {
            match live.view.press(key) {
                Some(Action::Quit) => return Ok(ExitCode::SUCCESS),
                Some(Action::Step(by)) => {
                    at = usize::try_from(by.unsigned_abs()).map_or(at, |steps| {
                        if by < 0 { at.saturating_sub(steps) } else { (at + steps).min(last) }
                    });
                }
                Some(Action::Redraw) => {
                    // A replay that plays from its end begins again.
                    if live.view.is_playing && at == last {
                        at = 0;
                    }
                    live.draw();
                }
                None => {}
            }
        }
        if live.view.is_playing && played.elapsed() >= PLAY_INTERVAL {
            played = Instant::now();
            at = (at + 1).min(last);
            live.view.is_playing = at < last;
        }
    }
}
