//! Operations that a program defines for its reductions.

use std::panic::{AssertUnwindSafe, catch_unwind};

use sapwood_group::{Definition, Element, FoldFailed, Operation as Reduction, OperationId};

use super::Group;
use super::failure::GroupFailure;
use super::shared::Command;
use super::value::{Number, bytes_of, numbers_of};
use crate::Result;

impl Group {
    /// Defines an operation under a name, for reductions of numbers of one type: a function of two
    /// numbers that is associative and commutative. Each member defines it before it calls; those
    /// that have done so fold values of others on their way to the root, in the member's own
    /// thread. The function must therefore be short: a member whose thread is held up for long
    /// counts as dead. One that panics ends the reduction at all members, whose answers name the
    /// member ([`Reason::FunctionFailed`](crate::Reason::FunctionFailed)); so does a member that
    /// calls what it has not defined ([`Reason::Undefined`](crate::Reason::Undefined)).
    ///
    /// ```
    /// # use sapwood::{Group, Key};
    /// # fn main() -> sapwood::Result<()> {
    /// # let group = Group::builder(Key::generate()?).create()?;
    /// let farther = group.define("farther", |a: f64, b| if b.abs() > a.abs() { b } else { a })?;
    /// let answer = group.allreduce(farther, &[1.5, -7.0]).wait()?;
    /// assert_eq!(answer.numbers::<f64>()?, [1.5, -7.0]);
    /// # group.leave()
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`GroupFailure::Defined`] where the name is used; [`GroupFailure::Ended`] if this member is
    /// not in the group any more.
    pub fn define<T: Number + 'static>(
        &self,
        name: &str,
        function: impl Fn(T, T) -> T + Send + Sync + 'static,
    ) -> Result<Reduction> {
        // It is called with each segment of a value: in its place, without memory of its own.
        let fold = move |into: &mut [u8], value: &[u8]| -> Option<()> {
            let bytes = T::ELEMENT.bytes();
            for (one, other) in into.chunks_exact_mut(bytes).zip(value.chunks_exact(bytes)) {
                function(T::read(one)?, T::read(other)?).write(one);
            }
            Some(())
        };
        self.add_definition(name, Reduction::Defined, T::ELEMENT, fold)
    }

    /// As [`Group::define`], of whole values in the order of the virtual nodes: the function folds
    /// the second value into the first, and need not be commutative. The values are gathered, and
    /// the root folds them, so that it costs as much as a gather and has its limit for the value
    /// of a member.
    ///
    /// # Errors
    /// As [`Group::define`].
    pub fn define_in_order<T: Number + 'static>(
        &self,
        name: &str,
        function: impl Fn(&mut [T], &[T]) + Send + Sync + 'static,
    ) -> Result<Reduction> {
        let fold = move |into: &mut [u8], value: &[u8]| -> Option<()> {
            let (mut one, other) = (numbers_of::<T>(into)?, numbers_of::<T>(value)?);
            function(&mut one, &other);
            into.copy_from_slice(&bytes_of(&one));
            Some(())
        };
        self.add_definition(name, Reduction::DefinedInOrder, T::ELEMENT, fold)
    }

    fn add_definition(
        &self,
        name: &str,
        reduction: fn(OperationId) -> Reduction,
        element: Element,
        fold: impl Fn(&mut [u8], &[u8]) -> Option<()> + Send + Sync + 'static,
    ) -> Result<Reduction> {
        let operation = OperationId::of_name(name);
        let definition = Definition::new(element, move |into, value| {
            // What a function has made that panics is not used, and the member goes on.
            let folded = catch_unwind(AssertUnwindSafe(|| fold(into, value)));
            folded.ok().flatten().ok_or(FoldFailed)
        });
        let mut state = self.shared.lock();
        state.check_up()?;
        if !state.defined.insert(operation) {
            return Err(GroupFailure::Defined { name: name.to_string() }.into());
        }
        state.commands.push_back(Command::Define { operation, definition });
        drop(state);
        let _ = self.shared.engine.wake();
        Ok(reduction(operation))
    }
}
