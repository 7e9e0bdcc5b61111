//! Folded output: what equal hosts said, once.

use super::conductor::Conductor;
use super::diff::unified;
use super::printer::write_lines;
use super::results::Class;
use crate::exit::Failure;

/// The line above and below the hosts.
const RULE: &str = "---------------";

/// Longest output that is compared, in bytes; what is beyond is passed over.
const COMPARED_BYTES_MAX: usize = 8 << 20;

/// Writes every class under its hosts, standard output and standard error each to its own stream.
///
/// # Errors
/// As [`Conductor::content`].
pub(super) fn write_blocks(conductor: &mut Conductor<'_>) -> Result<(), Failure> {
    for class in conductor.results.classes() {
        write_block(conductor, &class)?;
    }
    Ok(())
}

fn write_block(conductor: &mut Conductor<'_>, class: &Class) -> Result<(), Failure> {
    let nodes = conductor.results.nodes(&class.ranks);
    for which in 0..2 {
        let digest = [class.outcome.output, class.outcome.errors][which];
        if digest.length == 0 {
            continue;
        }
        let header = format!("{RULE}\n{nodes} ({})\n{RULE}\n", nodes.len());
        put(conductor, which, header.as_bytes())?;
        let mut ends_with_line = true;
        let is_whole = conductor.content(class, which, &mut |printer, part| {
            ends_with_line = part.last().map_or(ends_with_line, |&last| last == b'\n');
            printer.stream(which).write_all(part).map_err(|error| Failure::output(&error))
        })?;
        if !ends_with_line {
            put(conductor, which, b"\n")?;
        }
        note_cut(conductor, &nodes.to_string(), digest.length, digest.kept, is_whole)?;
    }
    Ok(())
}

/// Writes every class line by line, each after its hosts.
///
/// # Errors
/// As [`Conductor::content`].
pub(super) fn write_folded_lines(conductor: &mut Conductor<'_>) -> Result<(), Failure> {
    for class in conductor.results.classes() {
        let label = conductor.results.nodes(&class.ranks).to_string();
        write_labelled(conductor, &class, &label)?;
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
        let label = conductor.results.hosts[rank as usize].clone();
        write_labelled(conductor, class, &label)?;
    }
    Ok(())
}

fn write_labelled(
    conductor: &mut Conductor<'_>,
    class: &Class,
    label: &str,
) -> Result<(), Failure> {
    let label = if conductor.printer.has_label { format!("{label}: ") } else { String::new() };
    for which in 0..2 {
        // A line may come in two parts.
        let mut begun: Vec<u8> = Vec::new();
        let digest = [class.outcome.output, class.outcome.errors][which];
        let is_whole = conductor.content(class, which, &mut |printer, part| {
            begun.extend_from_slice(part);
            let whole = begun.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
            let whole = if begun.len() - whole > COMPARED_BYTES_MAX { begun.len() } else { whole };
            let written = write_lines(printer.stream(which), &label, &begun[..whole]);
            begun.drain(..whole);
            written.map_err(|error| Failure::output(&error))
        })?;
        let target = conductor.printer.stream(which);
        write_lines(target, &label, &begun).map_err(|error| Failure::output(&error))?;
        note_cut(conductor, label.trim_end_matches(": "), digest.length, digest.kept, is_whole)?;
    }
    Ok(())
}

/// Writes the largest class, and of the others how they differ from it.
///
/// # Errors
/// As [`Conductor::content`].
pub(super) fn write_differences(conductor: &mut Conductor<'_>) -> Result<(), Failure> {
    let classes = conductor.results.classes();
    let Some((majority, others)) = classes.split_first() else { return Ok(()) };
    write_block(conductor, majority)?;
    let majority_nodes = conductor.results.nodes(&majority.ranks).to_string();
    for which in 0..2 {
        let wanted = gathered(conductor, majority, which)?;
        for other in others {
            let nodes = conductor.results.nodes(&other.ranks).to_string();
            let got = gathered(conductor, other, which)?;
            put(conductor, which, &unified(&wanted, &got, &majority_nodes, &nodes))?;
        }
    }
    Ok(())
}

/// One output of a class in memory, as far as the limit goes.
pub(super) fn gathered(
    conductor: &mut Conductor<'_>,
    class: &Class,
    which: usize,
) -> Result<Vec<u8>, Failure> {
    let mut all = Vec::new();
    conductor.content(class, which, &mut |_, part| {
        let room = COMPARED_BYTES_MAX - all.len();
        all.extend_from_slice(&part[..part.len().min(room)]);
        Ok(())
    })?;
    Ok(all)
}

fn put(conductor: &mut Conductor<'_>, which: usize, bytes: &[u8]) -> Result<(), Failure> {
    let written = conductor.printer.stream(which).write_all(bytes);
    written.map_err(|error| Failure::output(&error))
}

/// Says so where an output is not all there.
fn note_cut(
    conductor: &mut Conductor<'_>,
    nodes: &str,
    length: u64,
    kept: u64,
    is_whole: bool,
) -> Result<(), Failure> {
    if is_whole && kept == length {
        return Ok(());
    }
    let line = if is_whole {
        format!("sapwood: {nodes}: the first {kept} of {length} bytes\n")
    } else {
        format!("sapwood: {nodes}: the output ({length} bytes) was lost with its hosts\n")
    };
    conductor.printer.flush()?;
    put(conductor, 1, line.as_bytes())
}
