//! Folded output: what equal hosts said, once.

use super::conductor::Conductor;
use super::diff::unified;
use super::fetched::Fetched;
use super::printer::write_lines;
use super::results::Sheet;
use sapwood_command_line::exit::{self, Failure};

/// The line above and below the hosts.
const RULE: &str = "---------------";

/// Longest output that is compared, in bytes; what is beyond is passed over.
const COMPARED_BYTES_MAX: usize = 8 << 20;

/// Writes equal outputs under their hosts: standard output and standard error each by itself, to
/// its own stream.
///
/// # Errors
/// As [`Conductor::content`].
pub(super) fn write_blocks(conductor: &mut Conductor<'_>) -> Result<(), Failure> {
    for which in 0..2 {
        for sheet in conductor.results.sheets(which) {
            write_block(conductor, &sheet)?;
        }
    }
    Ok(())
}

fn write_block(conductor: &mut Conductor<'_>, sheet: &Sheet) -> Result<(), Failure> {
    if sheet.digest.length == 0 {
        return Ok(());
    }
    let which = sheet.which;
    let nodes = conductor.results.nodes(&sheet.ranks);
    let header = format!("{RULE}\n{nodes} ({})\n{RULE}\n", nodes.len());
    put(conductor, which, header.as_bytes())?;
    let mut ends_with_line = true;
    let fetched = conductor.content(sheet, &mut |printer, part| {
        ends_with_line = part.last().map_or(ends_with_line, |&last| last == b'\n');
        printer.stream(which).write_all(part).map_err(|error| Failure::output(&error))
    })?;
    if !ends_with_line {
        put(conductor, which, b"\n")?;
    }
    note_cut(conductor, fetched, &nodes.to_string(), sheet)
}

/// Writes equal outputs line by line, each after its hosts.
///
/// # Errors
/// As [`Conductor::content`].
pub(super) fn write_folded_lines(conductor: &mut Conductor<'_>) -> Result<(), Failure> {
    for which in 0..2 {
        for sheet in conductor.results.sheets(which) {
            let label = conductor.results.nodes(&sheet.ranks).to_string();
            write_labelled(conductor, &sheet, &label)?;
        }
    }
    Ok(())
}

/// Writes the lines of every host, in the order of the hosts.
///
/// # Errors
/// As [`Conductor::content`].
pub(super) fn write_lines_of_hosts(conductor: &mut Conductor<'_>) -> Result<(), Failure> {
    let classes = conductor.results.classes();
    for rank in conductor.results.ended().clone().iter() {
        let Some(class) = classes.iter().find(|class| class.ranks.contains(rank)) else { continue };
        let label = conductor.results.hosts.get(&rank).cloned().unwrap_or_default();
        for which in 0..2 {
            write_labelled(conductor, &class.sheet(which), &label)?;
        }
    }
    Ok(())
}

fn write_labelled(
    conductor: &mut Conductor<'_>,
    sheet: &Sheet,
    nodes: &str,
) -> Result<(), Failure> {
    let label = conductor.printer.label.of(&nodes);
    let which = sheet.which;
    // A line may come in two parts.
    let mut begun: Vec<u8> = Vec::new();
    let fetched = conductor.content(sheet, &mut |printer, part| {
        // No line ends before this part.
        let before = begun.len();
        begun.extend_from_slice(part);
        let end = part.iter().rposition(|&byte| byte == b'\n');
        let whole = end.map_or(0, |last| before + last + 1);
        let whole = if begun.len() - whole > COMPARED_BYTES_MAX { begun.len() } else { whole };
        let written = write_lines(printer.stream(which), &label, &begun[..whole]);
        begun.drain(..whole);
        written.map_err(|error| Failure::output(&error))
    })?;
    let target = conductor.printer.stream(which);
    write_lines(target, &label, &begun).map_err(|error| Failure::output(&error))?;
    note_cut(conductor, fetched, nodes, sheet)
}

/// Writes what most hosts wrote, and of the others how they differ from it.
///
/// # Errors
/// As [`Conductor::content`].
pub(super) fn write_differences(conductor: &mut Conductor<'_>) -> Result<(), Failure> {
    for which in 0..2 {
        let sheets = conductor.results.sheets(which);
        let Some((majority, others)) = sheets.split_first() else { continue };
        write_block(conductor, majority)?;
        if others.is_empty() {
            continue;
        }
        let majority_nodes = conductor.results.nodes(&majority.ranks).to_string();
        // Its block has said it already where this is not all of it.
        let mut wanted = Vec::new();
        gather(conductor, majority, &mut wanted)?;
        for other in others {
            let nodes = conductor.results.nodes(&other.ranks).to_string();
            let got = gathered(conductor, other)?;
            put(conductor, which, &unified(&wanted, &got, &majority_nodes, &nodes))?;
        }
    }
    Ok(())
}

/// An output in memory, as far as the limit goes. A line says so where it has not come whole.
///
/// # Errors
/// As [`Conductor::content`].
pub(super) fn gathered(conductor: &mut Conductor<'_>, sheet: &Sheet) -> Result<Vec<u8>, Failure> {
    let mut all = Vec::new();
    let fetched = gather(conductor, sheet, &mut all)?;
    let nodes = conductor.results.nodes(&sheet.ranks).to_string();
    note_cut(conductor, fetched, &nodes, sheet)?;
    Ok(all)
}

/// Puts an output into memory, as far as the limit goes.
fn gather(
    conductor: &mut Conductor<'_>,
    sheet: &Sheet,
    all: &mut Vec<u8>,
) -> Result<Fetched, Failure> {
    conductor.content(sheet, &mut |_, part| {
        let room = COMPARED_BYTES_MAX - all.len();
        all.extend_from_slice(&part[..part.len().min(room)]);
        Ok(())
    })
}

fn put(conductor: &mut Conductor<'_>, which: usize, bytes: &[u8]) -> Result<(), Failure> {
    let written = conductor.printer.stream(which).write_all(bytes);
    written.map_err(|error| Failure::output(&error))
}

/// Says so where an output of these hosts is not all there.
fn note_cut(
    conductor: &mut Conductor<'_>,
    fetched: Fetched,
    nodes: &str,
    sheet: &Sheet,
) -> Result<(), Failure> {
    let Some(text) = fetched.lack(nodes, sheet.digest.length) else { return Ok(()) };
    conductor.results.is_cut |= !fetched.is_at_limit();
    conductor.printer.flush()?;
    put(conductor, 1, exit::complaint(text).as_bytes())
}
