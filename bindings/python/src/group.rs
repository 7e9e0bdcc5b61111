//! One member of a group. The package beside it gives it the calls of mpi4py.
//!
//! A group's handle may be used by several threads at once, unlike a network's: each call only
//! starts an operation or looks whether it has ended.

use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sapwood::{
    AddressFile, Element, GroupBuilder, GroupOperation, Key, Number, PartCount, Reduction,
};

use crate::error::{Failure, of_file, of_network};
use crate::group_call::{Called, GroupCall, GroupValue, SIGNAL_LOOK};
use crate::handle::{Signals, relaxed};
use crate::ranks::{self, RankSet};
use crate::settings;

/// A new key in a file that only its owner can read.
#[pyfunction]
pub(crate) fn make_key(path: PathBuf) -> PyResult<()> {
    let failed = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
    let key = Key::generate().map_err(|error| failed(&error))?;
    key.write_file(&path).map_err(|error| failed(&error))
}

/// One member.
#[pyclass(module = "sapwood", frozen, weakref)]
pub(crate) struct GroupMember {
    /// Removed before the member leaves.
    file: Mutex<Option<AddressFile>>,
    held: Mutex<Option<Arc<Held>>>,
}

/// The member, which several calls may use at once.
struct Held {
    group: sapwood::Group,
    /// The member that carries this virtual node is left those of this one.
    heir: OnceLock<u32>,
}

impl Held {
    fn leave(self) -> sapwood::Result<()> {
        match self.heir.into_inner() {
            Some(heir) => self.group.leave_to(heir),
            None => self.group.leave(),
        }
    }
}

/// How a member comes into its group.
enum Entry {
    /// As the first one, which may write its address to a file.
    First(Option<PathBuf>),
    /// By the address of another one.
    At(String),
    /// By the address in a file, which is waited for.
    ByFile(PathBuf, Duration),
}

/// The same, as the package chooses it.
#[pyclass(module = "sapwood._native", frozen)]
pub(crate) struct GroupEntry {
    entry: Entry,
    /// What the member takes from another one, which stays.
    take: sapwood::RankSet,
}

#[pymethods]
impl GroupEntry {
    /// As the first member, which writes its address to a file if one is named.
    #[staticmethod]
    fn first(address_file: Option<PathBuf>) -> Self {
        Self { entry: Entry::First(address_file), take: sapwood::RankSet::new() }
    }

    /// By the address of another member.
    #[staticmethod]
    fn at(address: String, take: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Self::joining(Entry::At(address), take)
    }

    /// By the address in a file, which is waited for.
    #[staticmethod]
    fn by_file(
        address_file: PathBuf,
        address_timeout: f64,
        take: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let patience = settings::seconds("address_timeout", address_timeout)?;
        Self::joining(Entry::ByFile(address_file, patience), take)
    }
}

impl GroupEntry {
    fn joining(entry: Entry, take: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let take = take.map(ranks::extract).transpose()?.unwrap_or_default();
        Ok(Self { entry, take })
    }
}

#[pymethods]
impl GroupMember {
    /// Creates a group, or joins one.
    #[new]
    #[pyo3(signature = (
        entry, key, names, space, listen, site, tree, timeout, encryption, shared_memory, grace
    ))]
    #[allow(clippy::too_many_arguments, reason = "the package gives all of them")]
    fn new(
        py: Python<'_>,
        entry: &Bound<'_, GroupEntry>,
        key: Option<PathBuf>,
        names: Option<&Bound<'_, PyAny>>,
        space: u32,
        listen: &str,
        site: u32,
        tree: &str,
        timeout: f64,
        encryption: Option<bool>,
        shared_memory: bool,
        grace: Option<f64>,
    ) -> PyResult<Self> {
        let key = match key {
            Some(path) => Key::from_file(&path).map_err(|error| refused(&error))?,
            None => sapwood::key_from_environment()
                .map_err(|error| of_network(py, &error))?
                .ok_or_else(|| {
                    PyValueError::new_err("key: name the key's file, or set SAPWOOD_KEY")
                })?,
        };
        let tree = tree.parse().map_err(|error: sapwood::UnknownTree| refused(&error))?;
        let deadline = settings::seconds("timeout", timeout)?;
        let mut builder = sapwood::Group::builder(key).space(space).site(site).listen(listen);
        builder = builder.tree(tree).deadline(deadline).shared_memory(shared_memory);
        if let Some(names) = names {
            builder = builder.names(ranks::extract(names)?);
        }
        if let Some(is_on) = encryption {
            builder = builder.encryption(is_on);
        }
        if let Some(grace) = grace {
            builder = builder.grace(settings::seconds("grace", grace)?);
        }
        let entry = entry.get();
        Self::enter(py, builder.take(entry.take.clone()), &entry.entry)
    }

    /// Where others dial this member.
    #[getter]
    fn address(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |group| Ok(group.address()))
    }

    /// The virtual nodes that it carries.
    #[getter]
    fn names(&self, py: Python<'_>) -> PyResult<RankSet> {
        self.with(py, |group| Ok(RankSet(group.names())))
    }

    /// The virtual nodes that are carried by members, as this one knows them.
    #[getter]
    fn everyone(&self, py: Python<'_>) -> PyResult<RankSet> {
        self.with(py, |group| Ok(RankSet(group.everyone())))
    }

    /// Values that were dropped, since the program did not take them.
    #[getter]
    fn lost(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |group| Ok(group.lost()))
    }

    /// Readable while there is news.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        self.with(py, |group| Ok(group.descriptor().as_raw_fd()))
    }

    /// Makes the descriptor unreadable until there is news again.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |group| {
            group.clear();
            Ok(())
        })
    }

    /// Starts an operation; which settings it takes depends on which it is.
    #[pyo3(signature = (
        name, *, root = None, value = None, values = None, operation = "sum", element = "byte",
        tag = 0, tree = None, timeout = None, number = None, bypass = false
    ))]
    #[allow(clippy::too_many_arguments, reason = "the package gives those that apply")]
    fn start(
        &self,
        py: Python<'_>,
        name: &str,
        root: Option<u32>,
        value: Option<Vec<u8>>,
        values: Option<Vec<(u32, Vec<u8>)>>,
        operation: &str,
        element: &str,
        tag: u64,
        tree: Option<&str>,
        timeout: Option<f64>,
        number: Option<u64>,
        bypass: bool,
    ) -> PyResult<GroupCall> {
        let deadline = timeout.map(|timeout| settings::seconds("timeout", timeout)).transpose()?;
        let tree = tree.map(str::parse).transpose();
        let tree = tree.map_err(|error: sapwood::UnknownTree| refused(&error))?;
        let (reduction, element) = (reduction(operation)?, self::element(element)?);
        let at = root.unwrap_or(0);
        let bytes = value.clone().unwrap_or_default();
        self.with(py, |group| {
            let mut built: GroupOperation<'_> = match name {
                "barrier" => group.barrier(),
                "broadcast" => group.broadcast(at, value),
                "gather" => group.gather(at, bytes),
                "allgather" => group.allgather(bytes),
                "scatter" => group.scatter(at, values),
                "all_to_all" => group.all_to_all(values.unwrap_or_default()),
                "reduce" => numbers(group, Some(at), reduction, element, &bytes),
                "allreduce" => numbers(group, None, reduction, element, &bytes),
                "send" => group.send(at, tag, bytes),
                "publish" => group.publish(tag, bytes),
                other => {
                    let text = format!("there is no operation '{other}'");
                    return Err(Failure::Own("ValuesError", text));
                }
            };
            if let (Some(root), "barrier" | "allgather" | "allreduce") = (root, name) {
                built = built.root(root);
            }
            if let Some(tree) = tree {
                built = built.tree(tree);
            }
            if let Some(deadline) = deadline {
                built = built.deadline(deadline);
            }
            if let Some(number) = number {
                built = built.number(number);
            }
            let deadline = deadline.unwrap_or(Duration::MAX);
            // A call that waits for room holds no lock of the interpreter.
            let request = match bypass {
                false => Called::Request(built.start()?),
                true => Called::Ended(py.detach(|| built.bypass())?),
            };
            Ok(GroupCall::new(request, deadline))
        })
    }

    /// Reductions that this member has left early: open, passed on, failed.
    #[getter]
    fn bypassed(&self, py: Python<'_>) -> PyResult<(usize, u64, u64)> {
        self.with(py, |group| {
            let count = group.bypassed();
            Ok((count.open, count.passed_on, count.failed))
        })
    }

    /// Parts of reductions that came after and before this member's calls, each with bytes and
    /// copies; calls that waited before they left, and those whose values came meanwhile.
    #[getter]
    fn reduce_counts(&self, py: Python<'_>) -> PyResult<(PartCounts, PartCounts, u64, u64)> {
        let counted = py.detach(|| self.locked(|group| Ok(group.reduce_counts()?)));
        let counts = counted.map_err(|failure| failure.into_error(py))?;
        let (waits, met) = (counts.grace_waits, counts.grace_met);
        Ok((part_counts(counts.expected), part_counts(counts.unexpected), waits, met))
    }

    /// The next value that another member has sent; none after `timeout` seconds.
    fn receive(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<GroupValue>> {
        let until = Instant::now() + settings::seconds("timeout", timeout)?;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let received = py.detach(|| {
                self.locked(|group| match group.receive(left.min(SIGNAL_LOOK)) {
                    Ok(delivery) => Ok(Some(delivery)),
                    Err(sapwood::Error::Timeout { .. }) => Ok(None),
                    Err(error) => Err(error.into()),
                })
            });
            match received.map_err(|failure| failure.into_error(py))? {
                Some(delivery) => return Ok(Some(GroupValue::new(delivery))),
                None if left.is_zero() => return Ok(None),
                None => py.check_signals()?,
            }
        }
    }

    /// Waits until this many virtual nodes are carried.
    fn wait_for(&self, py: Python<'_>, count: u64, timeout: f64) -> PyResult<()> {
        let timeout = settings::seconds("timeout", timeout)?;
        let waited = py.detach(|| self.locked(|group| Ok(group.wait_for(count, timeout)?)));
        waited.map_err(|failure| failure.into_error(py))
    }

    /// Leaves, once; to the member that carries a virtual node, if one is given.
    #[pyo3(signature = (to = None))]
    fn leave(&self, py: Python<'_>, to: Option<u32>) -> PyResult<()> {
        let Some(held) = relaxed(&self.held).take() else { return Ok(()) };
        if let Some(heir) = to {
            // It was not set before: the member was taken just now.
            let _ = held.heir.set(heir);
        }
        let file = relaxed(&self.file).take();
        let left = py.detach(|| {
            drop(file);
            leave_last(held)
        });
        left.map_err(|error| of_network(py, &error))
    }

    /// Whether it has left.
    #[getter]
    fn closed(&self) -> bool {
        relaxed(&self.held).is_none()
    }
}

impl GroupMember {
    fn enter(py: Python<'_>, builder: GroupBuilder, entry: &Entry) -> PyResult<Self> {
        if let Entry::First(Some(path)) = entry {
            let asking = builder.clone();
            let cleared = py.detach(move || AddressFile::clear(path, &asking));
            cleared.map_err(|error| of_file(py, path, &error))?;
        }
        let signals = Signals::default();
        let hook = signals.hook();
        let entered = py.detach(move || match entry {
            Entry::First(_) => builder.create(),
            Entry::At(address) => builder.join(address),
            Entry::ByFile(path, patience) => AddressFile::join(path, &builder, *patience, hook),
        });
        let group = signals.raise(py, entered)?;
        let (group, file) = match entry {
            Entry::First(Some(path)) => {
                let written = py.detach(move || with_file(group, path));
                written.map_err(|error| of_file(py, path, &error))?
            }
            _ => (group, None),
        };
        let held = Held { group, heir: OnceLock::new() };
        Ok(Self { file: Mutex::new(file), held: Mutex::new(Some(Arc::new(held))) })
    }

    fn with<R>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&sapwood::Group) -> Result<R, Failure>,
    ) -> PyResult<R> {
        self.locked(work).map_err(|failure| failure.into_error(py))
    }

    fn locked<R>(
        &self,
        work: impl FnOnce(&sapwood::Group) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let held = relaxed(&self.held).clone();
        let held = held.ok_or_else(|| Failure::closed("the group"))?;
        let done = work(&held.group);
        // Another thread may have called `leave` meanwhile, and is not told how that ends.
        let _ = leave_last(held);
        done
    }
}

/// Leaves if no other call uses the member any more: the last one leaves for all.
fn leave_last(held: Arc<Held>) -> sapwood::Result<()> {
    Arc::into_inner(held).map_or(Ok(()), Held::leave)
}

/// A member whose address is in a file; it leaves where that cannot be written.
fn with_file(
    group: sapwood::Group,
    path: &Path,
) -> io::Result<(sapwood::Group, Option<AddressFile>)> {
    let file = AddressFile::write(path, &group)?;
    Ok((group, Some(file)))
}

/// Parts, their bytes, those that were copied, and the bytes of these.
type PartCounts = (u64, u64, u64, u64);

fn part_counts(count: PartCount) -> PartCounts {
    let PartCount { parts, bytes, copied_parts, copied_bytes } = count;
    (parts, bytes, copied_parts, copied_bytes)
}

fn refused(error: &dyn std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn reduction(name: &str) -> PyResult<Reduction> {
    Ok(match name {
        "sum" => Reduction::Sum,
        "product" => Reduction::Product,
        "min" => Reduction::Min,
        "max" => Reduction::Max,
        "and" => Reduction::And,
        "or" => Reduction::Or,
        other => return Err(refused(&format!("there is no reduction '{other}'"))),
    })
}

fn element(name: &str) -> PyResult<Element> {
    Ok(match name {
        "byte" => Element::Byte,
        "i32" => Element::I32,
        "i64" => Element::I64,
        "f32" => Element::F32,
        "f64" => Element::F64,
        other => return Err(refused(&format!("there is no type '{other}'"))),
    })
}

fn numbers<'a>(
    group: &'a sapwood::Group,
    root: Option<u32>,
    reduction: Reduction,
    element: Element,
    bytes: &[u8],
) -> GroupOperation<'a> {
    match element {
        Element::Byte => typed::<u8>(group, root, reduction, bytes),
        Element::I32 => typed::<i32>(group, root, reduction, bytes),
        Element::I64 => typed::<i64>(group, root, reduction, bytes),
        Element::F32 => typed::<f32>(group, root, reduction, bytes),
        Element::F64 => typed::<f64>(group, root, reduction, bytes),
    }
}

fn typed<'a, T: Number>(
    group: &'a sapwood::Group,
    root: Option<u32>,
    reduction: Reduction,
    bytes: &[u8],
) -> GroupOperation<'a> {
    let numbers: Vec<T> = bytes.chunks(T::ELEMENT.bytes()).filter_map(T::read).collect();
    match root {
        Some(root) => group.reduce(root, reduction, &numbers),
        None => group.allreduce(reduction, &numbers),
    }
}
