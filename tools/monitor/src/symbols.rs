//! Source file, line and function of addresses in the program's files, looked up after the run.

use std::collections::HashMap;

use addr2line::Loader;

/// Files that were opened, by path; none where a file has nothing to tell.
#[derive(Default)]
pub(crate) struct Symbols {
    files: HashMap<String, Option<Loader>>,
}

impl Symbols {
    /// The place of the call that returns to an address of a file as it was linked: `solver.c:42 in
    /// exchange`, or as much of it as is known; empty for nothing.
    pub(crate) fn place(&mut self, file: &str, address: u64) -> String {
        let open = || Loader::new(file).ok();
        let Some(loader) = self.files.entry(file.to_owned()).or_insert_with(open) else {
            return String::new();
        };
        // The address is of what follows the call, which may be another line or function.
        let call = address.saturating_sub(1);
        let function = function(loader, call);
        let location = loader.find_location(call).ok().flatten();
        let line = location.and_then(|location| {
            let name = location.file?.rsplit('/').next()?.to_owned();
            Some(location.line.map_or_else(|| name.clone(), |line| format!("{name}:{line}")))
        });
        match (line, function) {
            (Some(line), Some(function)) => format!("{line} in {function}"),
            (Some(line), None) => line,
            (None, Some(function)) => function,
            (None, None) => String::new(),
        }
    }
}

/// The innermost function that holds the address: by debugging information, else by the table of
/// symbols.
fn function(loader: &Loader, address: u64) -> Option<String> {
    let frame = loader.find_frames(address).ok()?.next().ok().flatten();
    let name = frame.and_then(|frame| frame.function);
    let name = name.and_then(|name| Some(name.demangle().ok()?.into_owned()));
    name.or_else(|| {
        let symbol = loader.find_symbol(address)?;
        Some(addr2line::demangle_auto(symbol.into(), None).into_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_tells_nothing() {
        let mut symbols = Symbols::default();
        assert_eq!(symbols.place("/nowhere/solver", 17), "");
        assert_eq!(symbols.place("/proc/self/status", 17), "");
    }
}
