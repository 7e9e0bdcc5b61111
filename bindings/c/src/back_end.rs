//! Back-ends: leaves of the tree, in the application's own process.

use std::ffi::{c_char, c_int, c_void};

use sapwood::{BackEnd, Packet};

use crate::error::{Failure, Result, guard, sapwood_error_t, shield};
use crate::event::{Told, sapwood_event_t};
use crate::filters;
use crate::handle::{Handle, bring, give, give_received, lend, take};
use crate::packet::sapwood_packet_t;
use crate::text;
use crate::values::{self, Pointers};

/// Stands for any free rank.
pub const SAPWOOD_ANY_RANK: u32 = 4294967295;

/// A leaf of the tree. It belongs to the thread that attached it.
pub struct sapwood_back_end_t {
    _opaque: (),
}

/// What a handle of a back-end holds.
pub struct Leaf {
    back_end: BackEnd,
    told: Told,
}

impl Handle for sapwood_back_end_t {
    type Thing = Leaf;
    const NAME: &'static str = "back-end";
}

/// Joins the network that has started this program, as its environment says.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_attach(
    back_end: *mut *mut sapwood_back_end_t,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            give(back_end, || {
                let back_end = BackEnd::attach().map_err(Failure::of_start)?;
                Ok(Leaf { back_end, told: Told::default() })
            })
        })
    }
}

/// Joins a network by the file that `sapwood_network_write_attach_file` wrote, under a rank or
/// under SAPWOOD_ANY_RANK.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_attach_by_file(
    back_end: *mut *mut sapwood_back_end_t,
    path: *const c_char,
    rank: u32,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            give(back_end, || {
                let path = text::path("attach file", path)?;
                let rank = (rank != SAPWOOD_ANY_RANK).then_some(rank);
                let back_end = BackEnd::attach_by_file(&path, rank).map_err(Failure::of_start)?;
                Ok(Leaf { back_end, told: Told::default() })
            })
        })
    }
}

/// Joins as the two above do, by a file or with NULL in the place of its path as the environment
/// says (`rank` is then not looked at), and runs the filters of streams that ask for them in their
/// back-ends: see `filters_at_back_ends` of sapwood_stream_options_t. They run in the calls of this
/// back-end's thread, without any limit of time.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_attach_with_filters(
    back_end: *mut *mut sapwood_back_end_t,
    path: *const c_char,
    rank: u32,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            give(back_end, || {
                let registry = filters::registry();
                let attached = if path.is_null() {
                    BackEnd::attach_with(registry)
                } else {
                    let path = text::path("attach file", path)?;
                    let rank = (rank != SAPWOOD_ANY_RANK).then_some(rank);
                    BackEnd::attach_by_file_with(&path, rank, &registry)
                };
                let back_end = attached.map_err(Failure::of_start)?;
                Ok(Leaf { back_end, told: Told::default() })
            })
        })
    }
}

/// Leaves the network; what was sent is written first. Sets the handle to NULL; nothing happens if
/// it is NULL already.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_close(
    back_end: *mut *mut sapwood_back_end_t,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || match take(back_end)? {
            Some(leaf) => Ok(leaf.back_end.close()?),
            None => Ok(()),
        })
    }
}

/// This back-end's rank; UINT32_MAX for a handle that may not be used here.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_rank(back_end: *const sapwood_back_end_t) -> u32 {
    // SAFETY: as the header's opening says.
    shield(u32::MAX, || unsafe { lend(back_end) }.map_or(u32::MAX, |leaf| leaf.back_end.rank()))
}

/// The next packet on any stream; waits for it at most `timeout_ms`, or for ever if that is -1.
/// Packets sent before are written first. Free the packet with `sapwood_packet_free`.
///
/// Gives SAPWOOD_ERROR_TIMEOUT, or SAPWOOD_ERROR_ENDED when the network ends, as it does for every
/// back-end in time.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_recv(
    back_end: *mut sapwood_back_end_t,
    packet: *mut *mut sapwood_packet_t,
    timeout_ms: i32,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            give_received(packet, "packet", || {
                let back_end = &mut lend(back_end)?.back_end;
                let received = match text::wait(timeout_ms)? {
                    Some(timeout) => back_end.recv_timeout(timeout)?,
                    None => back_end.recv()?,
                };
                Ok(Some(sapwood_packet_t::new(received.packet)))
            })
        })
    }
}

/// The next packet, if it is there already; else gives 0 and leaves NULL in `packet`.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_try_recv(
    back_end: *mut sapwood_back_end_t,
    packet: *mut *mut sapwood_packet_t,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            give_received(packet, "packet", || {
                let received = lend(back_end)?.back_end.try_recv()?;
                Ok(received.map(|received| sapwood_packet_t::new(received.packet)))
            })
        })
    }
}

/// As `sapwood_back_end_send`, with pointers as `sapwood_stream_broadcast_values` takes them.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_send_values(
    back_end: *mut sapwood_back_end_t,
    stream: u32,
    tag: i32,
    format: *const c_char,
    values: *const *const c_void,
    count: usize,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            let leaf = lend(back_end)?;
            let values = values::build(format, Pointers::new(values, count))?;
            Ok(leaf.back_end.send(stream, tag, values)?)
        })
    }
}

/// As `sapwood_back_end_try_send`, with pointers as `sapwood_stream_broadcast_values` takes them.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_try_send_values(
    back_end: *mut sapwood_back_end_t,
    stream: u32,
    tag: i32,
    format: *const c_char,
    values: *const *const c_void,
    count: usize,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            let leaf = lend(back_end)?;
            let values = values::build(format, Pointers::new(values, count))?;
            Ok(leaf.back_end.try_send(stream, tag, values)?)
        })
    }
}

/// As `sapwood_back_end_reply`, with pointers as `sapwood_stream_broadcast_values` takes them.
///
/// # Safety
/// As the opening of the header says; `packet` is NULL or alive, `is_open` NULL or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_reply_values(
    back_end: *mut sapwood_back_end_t,
    packet: *const sapwood_packet_t,
    is_open: *mut bool,
    format: *const c_char,
    values: *const *const c_void,
    count: usize,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            reply(packet, is_open, |packet| {
                let leaf = lend(back_end)?;
                let values = values::build(format, Pointers::new(values, count))?;
                Ok(leaf.back_end.reply(packet, values)?)
            })
        })
    }
}

/// As `sapwood_back_end_reply_values`, if that need not wait: gives SAPWOOD_ERROR_WOULD_WAIT when
/// the window is full, so that nothing was sent.
///
/// # Safety
/// As the opening of the header says; `packet` is NULL or alive, `is_open` NULL or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_try_reply_values(
    back_end: *mut sapwood_back_end_t,
    packet: *const sapwood_packet_t,
    is_open: *mut bool,
    format: *const c_char,
    values: *const *const c_void,
    count: usize,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            reply(packet, is_open, |packet| {
                let leaf = lend(back_end)?;
                let values = values::build(format, Pointers::new(values, count))?;
                Ok(leaf.back_end.try_reply(packet, values)?)
            })
        })
    }
}

/// # Safety
/// `packet` is NULL or alive, `is_open` NULL or a place.
unsafe fn reply(
    packet: *const sapwood_packet_t,
    is_open: *mut bool,
    send: impl FnOnce(&Packet) -> Result<bool>,
) -> Result<()> {
    // SAFETY: as the caller says.
    unsafe {
        let packet = packet.as_ref().ok_or_else(|| Failure::usage("packet: is NULL"))?;
        let was_open = send(packet.packet())?;
        if let Some(is_open) = is_open.as_mut() {
            *is_open = was_open;
        }
        Ok(())
    }
}

/// As `sapwood_back_end_send_in_wave`, with pointers as `sapwood_stream_broadcast_values` takes
/// them.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_send_in_wave_values(
    back_end: *mut sapwood_back_end_t,
    stream: u32,
    wave: u64,
    tag: i32,
    format: *const c_char,
    values: *const *const c_void,
    count: usize,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            let leaf = lend(back_end)?;
            let values = values::build(format, Pointers::new(values, count))?;
            Ok(leaf.back_end.send_in_wave(stream, wave, tag, values)?)
        })
    }
}

/// Writes the packets sent so far, as far as the system takes them.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_flush(
    back_end: *mut sapwood_back_end_t,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe { guard(error, || Ok(lend(back_end)?.back_end.flush()?)) }
}

/// Waits until a stream is open here, for a back-end that speaks first; `stream` gets its number.
/// `timeout_ms` must not be negative.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_wait_for_stream(
    back_end: *mut sapwood_back_end_t,
    stream: *mut u32,
    timeout_ms: i32,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            let leaf = lend(back_end)?;
            if stream.is_null() {
                return Err(Failure::usage("stream: no place for its number (NULL)"));
            }
            stream.write(leaf.back_end.wait_for_stream(text::limited(timeout_ms)?)?);
            Ok(())
        })
    }
}

/// The next change in the network; its kind is SAPWOOD_EVENT_NONE when there is none.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_next_event(
    back_end: *mut sapwood_back_end_t,
    event: *mut sapwood_event_t,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            let leaf = lend(back_end)?;
            if event.is_null() {
                return Err(Failure::usage("event: no place (NULL)"));
            }
            event.write(leaf.told.tell(leaf.back_end.next_event()));
            Ok(())
        })
    }
}

/// Lets the network work until something has happened, or `timeout_ms` are over, which must not be
/// negative.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_turn(
    back_end: *mut sapwood_back_end_t,
    timeout_ms: i32,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            let timeout = text::limited(timeout_ms)?;
            lend(back_end)?.back_end.turn(timeout)?;
            Ok(())
        })
    }
}

/// Whether the network has ended for this process; true for a handle that may not be used here.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_has_ended(back_end: *const sapwood_back_end_t) -> bool {
    // SAFETY: as the header's opening says.
    unsafe { lend(back_end) }.map_or(true, |leaf| leaf.back_end.has_ended())
}

/// A descriptor that is readable when there is work, for select, poll or epoll; it stays the
/// back-end's own. -1 for a handle that may not be used here.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_descriptor(back_end: *const sapwood_back_end_t) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe { lend(back_end) }.map_or(-1, |leaf| leaf.back_end.descriptor())
}

/// The number of packets that wait to be received; 0 for a handle that may not be used here.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_waiting(back_end: *const sapwood_back_end_t) -> u64 {
    // SAFETY: as the header's opening says.
    unsafe { lend(back_end) }.map_or(0, |leaf| leaf.back_end.waiting() as u64)
}

/// How many milliseconds `sapwood_back_end_turn` need not be called while the descriptor is not
/// readable; -1 for ever. 0 for a handle that may not be used here.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_idle_ms(back_end: *const sapwood_back_end_t) -> i32 {
    // SAFETY: as the header's opening says.
    shield(0, || unsafe { lend(back_end) }.map_or(0, |leaf| text::idle(leaf.back_end.idle_time())))
}

/// Makes the calling thread the one that the back-end belongs to; as
/// `sapwood_network_move_to_this_thread`.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_back_end_move_to_this_thread(
    back_end: *mut sapwood_back_end_t,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe { guard(error, || bring(back_end)) }
}
