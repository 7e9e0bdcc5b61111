//! Networks, as their front-end sees them.

use std::ffi::{CStr, CString, c_char, c_int};

use sapwood::Network;

use crate::error::{Failure, guard, sapwood_error_t, shield};
use crate::event::{Told, sapwood_event_t};
use crate::handle::{Handle, bring, give, lend, take};
use crate::options::{self, sapwood_network_options_t};
use crate::text::{self, to_c};

/// The first tag that an application may use; lower ones are the network's.
pub const SAPWOOD_FIRST_TAG: i32 = 100;

/// A tree of processes, seen from its root. It belongs to the thread that opened it.
pub struct sapwood_network_t {
    _opaque: (),
}

/// What a handle of a network holds.
pub struct Root {
    pub(crate) network: Network,
    told: Told,
    attach_points: CString,
    /// Names of filters in files that were shipped.
    shipped: Vec<CString>,
}

impl Handle for sapwood_network_t {
    type Thing = Root;
    const NAME: &'static str = "network";
}

/// The version of the library, such as "0.1.0". Static.
#[unsafe(no_mangle)]
pub extern "C" fn sapwood_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version holds no NUL"),
        };
    VERSION.as_ptr()
}

/// Starts the tree and waits until all processes have joined. If that fails, no process is left
/// running.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_network_open(
    network: *mut *mut sapwood_network_t,
    options: *const sapwood_network_options_t,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            give(network, || {
                let network = options::network(options)?.open().map_err(Failure::of_start)?;
                let line = |point: &sapwood::AttachPoint| {
                    format!("{} {} {}\n", point.parent, point.address, point.ranks)
                };
                let points: String = network.attach_points().iter().map(line).collect();
                let (told, attach_points) = (Told::default(), to_c(points));
                Ok(Root { network, told, attach_points, shipped: Vec::new() })
            })
        })
    }
}

/// Ends the tree: packets that were sent are delivered, then every process ends. Sets the handle to
/// NULL; nothing happens if it is NULL already. Streams of the network have to be closed, too,
/// before or after.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_network_close(
    network: *mut *mut sapwood_network_t,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || match take(network)? {
            Some(root) => Ok(root.network.close()?),
            None => Ok(()),
        })
    }
}

/// How many back-ends are connected now; 0 for a handle that may not be used here.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_network_size(network: *const sapwood_network_t) -> u64 {
    shield(0, || {
        // SAFETY: as the header's opening says.
        unsafe { lend(network) }.map_or(0, |root| root.network.everyone().size())
    })
}

/// The attach points: one line "parent-rank address ranks" for each, lent until the network is
/// closed; NULL for a handle that may not be used here.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_network_attach_points(
    network: *const sapwood_network_t,
) -> *const c_char {
    // SAFETY: as the header's opening says.
    unsafe { lend(network) }.map_or(std::ptr::null(), |root| root.attach_points.as_ptr())
}

/// Sends a file of filters, a shared object or WebAssembly made with sapwood_filter.h, to every
/// process of the tree, those that come later included. `file` is a path, or a name to be looked
/// for in the folders of SAPWOOD_FILTER_PATH here; `filter` a filter in it, NULL when it has one
/// only. `*name` is what `up` and `down` of a stream's options take: lent until the network is
/// closed. A file that was shipped before is not sent again.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_network_ship(
    network: *mut sapwood_network_t,
    file: *const c_char,
    filter: *const c_char,
    name: *mut *const c_char,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            let root = lend(network)?;
            let file = text::path("filter file", file)?;
            let filter = text::optional("filter", filter)?.unwrap_or_default();
            let shipped = to_c(root.network.ship(file)?.filter_name(filter));
            if !name.is_null() {
                // The text lies elsewhere than its owner, which may move.
                name.write(shipped.as_ptr());
            }
            root.shipped.push(shipped);
            Ok(())
        })
    }
}

/// Writes what back-ends need to attach: the network's key into `key_path`, a new file of mode
/// 0600, and the places with that file's name into `path`. Remove both when all have come.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_network_write_attach_file(
    network: *const sapwood_network_t,
    path: *const c_char,
    key_path: *const c_char,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            let root = lend(network)?;
            let path = text::path("attach file", path)?;
            let key_path = text::path("key file", key_path)?;
            Ok(root.network.write_attach_file(&path, &key_path)?)
        })
    }
}

/// Waits until `count` back-ends are connected. `timeout_ms` must not be negative.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_network_wait_for_back_ends(
    network: *mut sapwood_network_t,
    count: u64,
    timeout_ms: i32,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            let timeout = text::limited(timeout_ms)?;
            Ok(lend(network)?.network.wait_for_back_ends(count, timeout)?)
        })
    }
}

/// The next change in the network; its kind is SAPWOOD_EVENT_NONE when there is none.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_network_next_event(
    network: *mut sapwood_network_t,
    event: *mut sapwood_event_t,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            let root = lend(network)?;
            if event.is_null() {
                return Err(Failure::usage("event: no place (NULL)"));
            }
            event.write(root.told.tell(root.network.next_event()));
            Ok(())
        })
    }
}

/// Lets the network work until something has happened, or `timeout_ms` are over, which must not be
/// negative. Call it with 0 when the descriptor is readable; receiving does the same.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_network_turn(
    network: *mut sapwood_network_t,
    timeout_ms: i32,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            let timeout = text::limited(timeout_ms)?;
            lend(network)?.network.turn(timeout)?;
            Ok(())
        })
    }
}

/// Writes the packets sent so far, as far as the system takes them.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_network_flush(
    network: *mut sapwood_network_t,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe { guard(error, || Ok(lend(network)?.network.flush()?)) }
}

/// Has the tree repair itself from now on, or not: SAPWOOD_RECOVERY_ON or SAPWOOD_RECOVERY_OFF. A
/// network that was opened with SAPWOOD_RECOVERY_OFF cannot begin with it.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_network_switch_recovery(
    network: *mut sapwood_network_t,
    recovery: c_int,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            let is_on = options::is_recovering(recovery)?;
            Ok(lend(network)?.network.switch_recovery(is_on)?)
        })
    }
}

/// A descriptor that is readable when there is something to do, for select, poll or epoll; it stays
/// the network's own. -1 for a handle that may not be used here.
///
/// Receive until nothing is there before waiting for it: what has been read from the system already
/// does not make it readable again.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_network_descriptor(network: *const sapwood_network_t) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe { lend(network) }.map_or(-1, |root| root.network.descriptor())
}

/// How many milliseconds `sapwood_network_turn` need not be called while the descriptor is not
/// readable; -1 for ever. 0 for a handle that may not be used here.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_network_idle_ms(network: *const sapwood_network_t) -> i32 {
    // SAFETY: as the header's opening says.
    shield(0, || unsafe { lend(network) }.map_or(0, |root| text::idle(root.network.idle_time())))
}

/// The number of a stream on which an answer waits to be received: the first one after the stream
/// numbered `after`, or else the lowest; 0 if there is none, and for a handle that may not be used
/// here.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_network_answering(
    network: *const sapwood_network_t,
    after: u32,
) -> u32 {
    shield(0, || {
        // SAFETY: as the header's opening says.
        unsafe { lend(network) }.map_or(0, |root| root.network.answering(after).unwrap_or(0))
    })
}

/// Makes the calling thread the one that the network and all of its streams belong to.
///
/// For programs that lend a network from thread to thread: the caller holds a lock around every use
/// of it, or makes sure in another way that no other thread uses it meanwhile.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_network_move_to_this_thread(
    network: *mut sapwood_network_t,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe { guard(error, || bring(network)) }
}
