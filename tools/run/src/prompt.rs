//! Commands that are read line by line and run one after another, through one tree.
//!
//! The lines are read by a thread of their own, so that the tree is turned meanwhile. On a terminal
//! they can be edited, and those before are at hand; nothing of it is kept on disk.

use std::io::{BufRead, IsTerminal, PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::Session;
use sapwood_command_line::exit::{Failure, by_signal, complain};
use sapwood_hosts::tree_access::{StandardInput, Tree};

/// What ends it, besides the end of input.
const QUIT: [&str; 2] = [":quit", ":q"];

/// The longest wait for a line in one turn of the tree.
const TURN: Duration = Duration::from_secs(60);

/// The longest set of hosts that stands before a line, in bytes.
const LABEL_BYTES_MAX: usize = 40;

/// What the reading of a line came to.
enum Said {
    Line(String),
    /// The user has thrown the line away.
    Nothing,
    End,
    /// Why no more can be read, though there may be more.
    Fault(String),
}

/// Runs what is read until the input ends. Equal answers are written once, unless another style was
/// asked for. Gives the exit code of the last command.
///
/// # Errors
/// When the tree or the output fails.
pub(super) fn run(session: &mut Session<'_>, tree: &mut dyn Tree) -> Result<u8, Failure> {
    let mut arguments = session.arguments.clone();
    let style = &mut arguments.style;
    let is_styled = style.is_folded() || style.no_label;
    style.fold |= !is_styled && style.outdir.is_none() && style.errdir.is_none();
    let mut label = session.targets.set.to_string();
    if label.len() > LABEL_BYTES_MAX {
        label = format!("{} hosts", session.targets.names.len());
    }
    let lines = Lines::begin(format!("{label}> "))?;
    let mut code = 0;
    loop {
        let line = match lines.next(session, tree)? {
            Ok(Said::Line(line)) => line,
            Ok(Said::Nothing) => continue,
            Ok(Said::End) => return Ok(code),
            Ok(Said::Fault(fault)) => {
                let text = format!("the next command cannot be read: {fault}");
                return Err(Failure::usage(text));
            }
            Err(signal) => return Ok(signal),
        };
        match line.trim() {
            "" => continue,
            command if QUIT.contains(&command) => return Ok(code),
            command if command.starts_with(':') => {
                complain(format_args!("there is no {command}; {} ends", QUIT[0]));
                continue;
            }
            command => arguments.command = vec![command.to_string()],
        }
        code = session.conduct(tree, &arguments, StandardInput::Closed)?;
    }
}

/// The thread that reads lines, one each time it is asked.
struct Lines {
    ask: Sender<()>,
    said: Receiver<Said>,
    /// Readable when something was said.
    bell: PipeReader,
    /// How the terminal was.
    terminal: Option<Termios>,
}

impl Lines {
    fn begin(label: String) -> Result<Self, Failure> {
        let failed = |error| Failure::own(&format!("cannot read commands: {error}"));
        let terminal = std::io::stdin().is_terminal().then(|| tcgetattr(std::io::stdin()).ok());
        let terminal = terminal.flatten();
        let (bell, mut ringer) = std::io::pipe().map_err(failed)?;
        let ((ask, asked), (tell, said)) = (channel(), channel());
        let is_terminal = terminal.is_some();
        let reader = move || {
            let mut editor = is_terminal.then(DefaultEditor::new).and_then(Result::ok);
            while asked.recv().is_ok() {
                let line = match &mut editor {
                    Some(editor) => edited(editor, &label),
                    None => plain(),
                };
                // The asking thread may have gone.
                let is_heard = tell.send(line).is_ok() && ringer.write_all(b"!").is_ok();
                if !is_heard {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("lines".into()).spawn(reader).map_err(failed)?;
        Ok(Self { ask, said, bell, terminal })
    }

    /// The next line, or the exit code of a signal that ends us.
    fn next(
        &self,
        session: &mut Session<'_>,
        tree: &mut dyn Tree,
    ) -> Result<Result<Said, u8>, Failure> {
        let is_asked = self.ask.send(()).is_ok();
        tree.watch(self.bell.as_fd())?;
        for descriptor in session.signals.descriptors() {
            tree.watch(descriptor.as_fd())?;
        }
        let said = loop {
            if let Some(signal) = session.signals.take().pop() {
                break Err(by_signal(signal));
            }
            if let Ok(said) = self.said.try_recv() {
                // The bell has rung, or is about to.
                let _ = (&self.bell).read(&mut [0]);
                break Ok(said);
            }
            if !is_asked {
                break Ok(Said::End);
            }
            tree.turn(TURN)?;
        };
        tree.unwatch(self.bell.as_fd())?;
        for descriptor in session.signals.descriptors() {
            tree.unwatch(descriptor.as_fd())?;
        }
        Ok(said)
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // The thread may be in the middle of a line.
        if let Some(terminal) = &self.terminal {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, terminal);
        }
    }
}

/// A line of a terminal.
fn edited(editor: &mut DefaultEditor, label: &str) -> Said {
    match editor.readline(label) {
        Ok(line) => {
            // A line that cannot be kept is run all the same.
            let _ = editor.add_history_entry(&line);
            Said::Line(line)
        }
        Err(ReadlineError::Interrupted) => Said::Nothing,
        // Ctrl-D, or a terminal that has gone.
        Err(_) => Said::End,
    }
}

/// A line of a file or a pipe.
fn plain() -> Said {
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(0) => Said::End,
        Ok(_) => Said::Line(line),
        Err(error) => Said::Fault(error.to_string()),
    }
}
