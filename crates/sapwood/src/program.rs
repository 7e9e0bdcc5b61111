//! Programs that a network starts.

use std::path::{Path, PathBuf};

use sapwood_runtime::BackEndProgram;

use crate::{Error, Result};

/// The program of the back-ends, with its arguments.
#[derive(Clone, Debug)]
pub struct Program(pub(crate) BackEndProgram);

impl Program {
    /// A program by path, or by name to be found on the search path.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self(BackEndProgram {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            binds_itself: false,
        })
    }

    /// Promises that the program calls [`BackEnd::attach`](crate::BackEnd::attach) soon, itself and
    /// on its main thread: not through a shell or any other program that starts it in turn. It is
    /// then started without a fork, which makes a large tree start sooner.
    ///
    /// Every process that a tree starts has a death signal: the kernel kills it when its parent in
    /// the tree ends in any way. For any other program the signal is requested before it runs,
    /// which requires the fork; this one requests it in `attach`, and could outlive its parent
    /// until then. If the promise is broken, `attach` fails and says that the starter has ended.
    #[must_use]
    pub fn binds_itself(mut self) -> Self {
        self.0.binds_itself = true;
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<String>) -> Self {
        self.0.arguments.push(argument.into());
        self
    }

    /// Sets a variable in its environment.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.environment.push((name.into(), value.into()));
        self
    }
}

/// The file name of the program of communication processes.
const NODE_PROGRAM: &str = "sapwood-node";

/// The program of communication processes, which is run with the argument `node`: what
/// `SAPWOOD_NODE` names, this very program if it is called `sapwood-node`, or `sapwood-node` beside
/// it or on the search path.
///
/// # Errors
/// [`Error::NodeProgram`] when there is none.
pub fn node_program() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("SAPWOOD_NODE") {
        return Ok(PathBuf::from(named));
    }
    let own = std::env::current_exe().ok();
    if let Some(own) = own.as_deref().filter(|own| own.ends_with(NODE_PROGRAM)) {
        return Ok(own.to_path_buf());
    }
    let beside = own.and_then(|own| Some(own.parent()?.join(NODE_PROGRAM)));
    beside
        .filter(|path| path.is_file())
        .or_else(|| sapwood_launch::locate(Path::new(NODE_PROGRAM)).ok())
        .ok_or(Error::NodeProgram)
}
