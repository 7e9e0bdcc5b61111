//! What is written when a command has ended: lines about hosts that failed, or one JSON object.

use serde_json::{Value, json};

use super::Arguments;
use super::conductor::Conductor;
use super::folded;
use super::protocol::{Digest, State};
use super::results::{Class, Results};
use sapwood_command_line::exit::{Failure, OWN_FAILURE, complain, print};
use sapwood_hosts::absence;

/// Writes everything that the style asks for.
///
/// # Errors
/// As [`Conductor::content`].
pub(super) fn write(conductor: &mut Conductor<'_>, arguments: &Arguments) -> Result<(), Failure> {
    let style = &arguments.style;
    for rank in conductor.results.ended().clone().iter() {
        if let Some(host) = conductor.results.hosts.get(&rank) {
            conductor.printer.begin(host, rank)?;
        }
    }
    if style.json {
        let mut classes = Vec::new();
        for class in conductor.results.classes() {
            classes.push(class_as_json(conductor, &class)?);
        }
        return print(&format!("{}\n", object(&conductor.results, arguments, classes)));
    }
    if style.diff {
        folded::write_differences(conductor)?;
    } else if style.line && style.fold {
        folded::write_folded_lines(conductor)?;
    } else if style.line {
        folded::write_lines_of_hosts(conductor)?;
    } else if style.fold {
        folded::write_blocks(conductor)?;
    }
    conductor.printer.flush()?;
    if !style.quiet {
        write_failures(&conductor.results);
    }
    Ok(())
}

/// Writes the outcome where no host could be reached, and gives the exit code.
///
/// # Errors
/// When standard output cannot be written.
pub(super) fn write_unreached(results: &Results, arguments: &Arguments) -> Result<u8, Failure> {
    if arguments.style.json {
        print(&format!("{}\n", object(results, arguments, Vec::new())))?;
    } else if !arguments.style.quiet {
        write_failures(results);
    }
    Ok(exit_code(results, arguments))
}

/// The code with which the command ends: that of the hosts, if the user wants it, or that of a
/// failure here if a part of the printed outputs was lost.
pub(super) fn exit_code(results: &Results, arguments: &Arguments) -> u8 {
    let terms = &arguments.terms;
    let own = if results.is_cut { OWN_FAILURE } else { 0 };
    if terms.no_rc { own } else { results.exit_code(terms.missing_max).max(own) }
}

/// One line for each way to fail, with the hosts that failed so.
fn write_failures(results: &Results) {
    let mut lines: std::collections::BTreeMap<State, sapwood::RankSet> = Default::default();
    for class in results.classes() {
        if class.outcome.state != State::Exited(0) {
            lines.entry(class.outcome.state).or_default().union_with(class.ranks.as_ref());
        }
    }
    for (state, ranks) in lines {
        let nodes = results.nodes(&ranks);
        complain(format_args!("{nodes} ({}): {}", nodes.len(), words(state)));
    }
    for (ranks, reason) in results.missing() {
        complain(absence::line(&results.nodes(&ranks), &reason));
    }
    let running = results.running();
    if !running.is_empty() {
        let nodes = results.nodes(&running);
        complain(format_args!(
            "{nodes} ({}): was interrupted before the command ended",
            nodes.len()
        ));
    }
}

fn words(state: State) -> String {
    match state {
        State::Exited(status) => format!("exited with status {status}"),
        State::Killed(signal) => sapwood_launch::Exit::Signal(signal).to_string(),
        State::TimedOut => "timed out".to_string(),
        State::NotStarted(_) => "could not start the command".to_string(),
        State::Running | State::Told => "is running".to_string(),
    }
}

fn object(results: &Results, arguments: &Arguments, classes: Vec<Value>) -> Value {
    let nodes = |ranks: &sapwood::RankSet| {
        let nodes = results.nodes(ranks);
        json!({ "nodes": nodes.to_string(), "count": nodes.len() })
    };
    let missing: Vec<Value> = results
        .missing()
        .into_iter()
        .map(|(ranks, reason)| {
            let mut part = nodes(&ranks);
            part["reason"] = reason.into();
            part
        })
        .collect();
    let failed = results.with_state(|state| state != State::Exited(0));
    let timed_out = results.with_state(|state| state == State::TimedOut);
    let all: sapwood_topology::NodeSet = results.hosts.values().cloned().collect();
    json!({
        "schema": "sapwood.run/1",
        "command": arguments.command,
        "nodes": all.to_string(),
        "count": results.hosts.len(),
        "exit_code": exit_code(results, arguments),
        "classes": classes,
        "failed": nodes(&failed),
        "timed_out": nodes(&timed_out),
        "running": nodes(&results.running()),
        "missing": missing,
    })
}

fn class_as_json(conductor: &mut Conductor<'_>, class: &Class) -> Result<Value, Failure> {
    let nodes = conductor.results.nodes(&class.ranks);
    let (kind, number) = match class.outcome.state {
        State::Exited(status) => ("exited", Some(status)),
        State::Killed(signal) => ("signal", Some(signal)),
        State::TimedOut => ("timed_out", None),
        State::NotStarted(status) => ("not_started", Some(status)),
        State::Running | State::Told => ("running", None),
    };
    let stdout = folded::gathered(conductor, &class.sheet(0))?;
    let stderr = folded::gathered(conductor, &class.sheet(1))?;
    Ok(json!({
        "nodes": nodes.to_string(),
        "count": nodes.len(),
        "state": kind,
        "number": number,
        "stdout": output_as_json(&stdout, &class.outcome.output),
        "stderr": output_as_json(&stderr, &class.outcome.errors),
    }))
}

/// Text as text, other bytes in base64.
fn output_as_json(bytes: &[u8], digest: &Digest) -> Value {
    let (encoding, content) = match std::str::from_utf8(bytes) {
        Ok(text) => ("utf-8", text.to_string()),
        Err(_) => ("base64", base64(bytes)),
    };
    json!({
        "bytes": digest.length,
        "is_whole": bytes.len() as u64 == digest.length,
        "blake2s": digest.hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
        "encoding": encoding,
        "content": content,
    })
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let byte = |at: usize| u32::from(part.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= part.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_become_letters() {
        for (bytes, letters) in
            [(&b""[..], ""), (b"f", "Zg=="), (b"fo", "Zm8="), (b"foo", "Zm9v"), (b"\xff\0", "/wA=")]
        {
            assert_eq!(base64(bytes), letters);
        }
    }
}
