//! The functions that are observed, MPI's and `torch.distributed`'s, made from the one table that
//! the wrappers are made from too.
//!
//! `bindings/mpi/functions.table` has a line `id name class abi bytes` per function. It is parsed
//! when this crate is compiled; a table that is out of order does not compile.

use crate::Class;

/// A function's number in the table, from 1.
pub type FunctionId = u32;

/// One observed function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its number; never given to another function.
    pub id: FunctionId,
    /// Its name in C, or in PyTorch.
    pub name: &'static str,
    /// What it is judged together with.
    pub class: Class,
}

impl Function {
    /// The function of a number, if this release knows it.
    #[must_use]
    pub fn of(id: FunctionId) -> Option<&'static Self> {
        FUNCTIONS.get(usize::try_from(id).ok()?.checked_sub(1)?)
    }

    /// The function of a name. O(number of functions).
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        FUNCTIONS.iter().find(|function| function.name == name)
    }

    /// Whether it is one of MPI; else it is one of `torch.distributed`.
    #[must_use]
    pub fn is_mpi(&self) -> bool {
        self.name.starts_with("MPI_")
    }

    /// All of them, by number.
    #[must_use]
    pub fn all() -> &'static [Self] {
        &FUNCTIONS
    }
}

const TABLE: &[u8] = include_str!("../../../bindings/mpi/functions.table").as_bytes();
static FUNCTIONS: [Function; count()] = functions();

/// How many lines of the table are functions.
const fn count() -> usize {
    let (mut rest, mut count) = (TABLE, 0);
    while !rest.is_empty() {
        let (line, after) = split(rest, b'\n');
        count += is_function(line) as usize;
        rest = after;
    }
    count
}

const fn functions() -> [Function; count()] {
    let mut functions = [Function { id: 0, name: "", class: Class::Other }; count()];
    let (mut rest, mut at) = (TABLE, 0);
    while !rest.is_empty() {
        let (line, after) = split(rest, b'\n');
        if is_function(line) {
            functions[at] = function(line);
            assert!(functions[at].id as usize == at + 1, "functions.table: ids count up from 1");
            at += 1;
        }
        rest = after;
    }
    functions
}

const fn is_function(line: &[u8]) -> bool {
    !line.is_empty() && line[0] != b'#'
}

const fn function(line: &'static [u8]) -> Function {
    let (id, rest) = split(line, b' ');
    let (name, rest) = split(rest, b' ');
    let (class, _) = split(rest, b' ');
    let Ok(name) = core::str::from_utf8(name) else { panic!("functions.table: a name is UTF-8") };
    Function { id: number(id), name, class: Class::named(class) }
}

const fn number(digits: &[u8]) -> u32 {
    assert!(!digits.is_empty(), "functions.table: a line starts with an id");
    let (mut number, mut at) = (0, 0);
    while at < digits.len() {
        assert!(digits[at].is_ascii_digit(), "functions.table: an id is a number");
        number = number * 10 + (digits[at] - b'0') as u32;
        at += 1;
    }
    number
}

/// What comes before the first such byte, and what comes after it.
const fn split(bytes: &'static [u8], separator: u8) -> (&'static [u8], &'static [u8]) {
    let mut at = 0;
    while at < bytes.len() && bytes[at] != separator {
        at += 1;
    }
    let (before, from) = bytes.split_at(at);
    if from.is_empty() { (before, from) } else { (before, from.split_at(1).1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_by_its_number_and_by_its_name() {
        let allreduce = Function::named("MPI_Allreduce").expect("every MPI has it");
        assert_eq!(allreduce.class, Class::Collective);
        assert_eq!(Function::of(allreduce.id), Some(allreduce));
        assert!(allreduce.is_mpi());
        assert_eq!(Function::named("all_reduce").map(Function::is_mpi), Some(false));
        assert_eq!(Function::named("MPI_Waitall").map(|wait| wait.class), Some(Class::Wait));
    }

    #[test]
    fn unknown_numbers_and_names_are_nothing() {
        let count = u32::try_from(Function::all().len()).expect("a small table");
        assert_eq!(Function::of(0), None);
        assert_eq!(Function::of(count + 1), None);
        assert_eq!(Function::of(u32::MAX), None);
        assert_eq!(Function::named("MPI_Reduce_everything"), None);
    }

    #[test]
    fn no_name_stands_twice() {
        for function in Function::all() {
            assert_eq!(Function::named(function.name), Some(function));
        }
    }
}
