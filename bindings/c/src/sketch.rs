//! Sketches: what the filters of that name answer with, and what can be asked of them.

use std::ffi::{CString, c_char, c_int};

use sapwood::{AnySketch, Item, RankSet, TopNumber};

use crate::communicator::{lend_run, ranges_of, sapwood_rank_range_t};
use crate::error::{Failure, Result, guard, sapwood_error_code_t as Code, sapwood_error_t, shield};
use crate::format::sapwood_type_t;
use crate::packet::{self, sapwood_packet_t};
use crate::text::to_c;

/// Which filter a sketch is of.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sapwood_sketch_kind_t {
    /// There is no sketch.
    SAPWOOD_SKETCH_NONE = 0,
    /// `quantiles`: of numbers, each within a relative error.
    SAPWOOD_SKETCH_QUANTILES = 1,
    /// `kll`: of numbers, each within an error in rank.
    SAPWOOD_SKETCH_KLL = 2,
    /// `distinct`: how many different values there are.
    SAPWOOD_SKETCH_DISTINCT = 3,
    /// `heavy-hitters`: the most frequent items.
    SAPWOOD_SKETCH_HEAVY_HITTERS = 4,
    /// `top`: the largest numbers, and their ranks.
    SAPWOOD_SKETCH_TOP = 5,
    /// `histogram`: how many numbers are in each bin.
    SAPWOOD_SKETCH_HISTOGRAM = 6,
    /// `union`: all different integers and strings.
    SAPWOOD_SKETCH_UNION = 7,
    /// `prefix-tree`: call stacks as one tree.
    SAPWOOD_SKETCH_PREFIX_TREE = 8,
}

use sapwood_sketch_kind_t as Kind;

/// A sketch that was read. Plain memory: any thread may read it, and it outlives the packet.
pub struct sapwood_sketch_t {
    pub(crate) sketch: AnySketch,
    entries: Vec<sapwood_sketch_entry_t>,
    bins: Vec<sapwood_sketch_bin_t>,
    nodes: Vec<sapwood_sketch_node_t>,
    /// A prefix tree for people.
    text: Option<CString>,
    /// What entries and nodes point to.
    _lent: Vec<Lent>,
}

/// An item or number of a sketch. What it points to is lent until the sketch is freed.
#[repr(C)]
pub struct sapwood_sketch_entry_t {
    /// A sapwood_type_t that says where the value is: SAPWOOD_TYPE_INT64 in `integer`,
    /// SAPWOOD_TYPE_UINT64 in `natural`, SAPWOOD_TYPE_DOUBLE in `number`, SAPWOOD_TYPE_STRING in
    /// `text`.
    pub kind: c_int,
    /// The signed integer, or 0.
    pub integer: i64,
    /// The integer without sign, or 0.
    pub natural: u64,
    /// The number, or the double nearest to the integer; 0 for a string.
    pub number: f64,
    /// The string with a NUL behind it; NULL for a number.
    pub text: *const c_char,
    /// The string's length in bytes, which may hold NULs.
    pub text_bytes: usize,
    /// How often it came at least; 1 in a union, which does not count.
    pub at_least: u64,
    /// How often it came at most; the same as `at_least` in all but heavy hitters.
    pub at_most: u64,
    /// The back-ends that sent it, as "0-3,7"; empty in all but the sketch of `top`.
    pub ranks: *const c_char,
    /// The same as sorted ranges; NULL where there are none.
    pub ranges: *const sapwood_rank_range_t,
    /// How many ranges.
    pub range_count: usize,
}

/// A bin of a histogram.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sapwood_sketch_bin_t {
    /// The smallest number that it may hold.
    pub low: f64,
    /// What its numbers are below.
    pub high: f64,
    /// How many there are.
    pub count: u64,
}

/// A node of a prefix tree. What it points to is lent until the sketch is freed.
#[repr(C)]
pub struct sapwood_sketch_node_t {
    /// How many nodes are above it: 0 for an outermost frame.
    pub depth: usize,
    /// The frame, with a NUL behind it.
    pub name: *const c_char,
    /// The frame's length in bytes, which may hold NULs.
    pub name_bytes: usize,
    /// The back-ends whose stacks pass through it, as "0-3,7".
    pub ranks: *const c_char,
    /// The same as sorted ranges.
    pub ranges: *const sapwood_rank_range_t,
    /// How many ranges.
    pub range_count: usize,
    /// How many stacks pass through it.
    pub stacks: u64,
    /// How many of those end in it, or in what was cut off below it.
    pub ending: u64,
}

/// Memory that C is lent: a text with a NUL behind it, and ranks as text and as ranges.
struct Lent {
    text: Vec<u8>,
    ranks: CString,
    ranges: Vec<sapwood_rank_range_t>,
}

impl Lent {
    fn new(bytes: &[u8], ranks: Option<&RankSet>) -> Self {
        let mut text = Vec::with_capacity(bytes.len() + 1);
        text.extend_from_slice(bytes);
        text.push(0);
        let ranges = ranks.map(ranges_of).unwrap_or_default();
        Self { text, ranks: to_c(ranks.map_or_else(String::new, RankSet::to_string)), ranges }
    }

    fn first_range(&self) -> *const sapwood_rank_range_t {
        // SAFETY: NULL is no place.
        unsafe { lend_run(&self.ranges, std::ptr::null_mut()) }
    }
}

/// A value, and how often it came.
struct Counted<'a> {
    value: Value<'a>,
    at_least: u64,
    at_most: u64,
    ranks: Option<&'a RankSet>,
}

enum Value<'a> {
    Number(TopNumber),
    Text(&'a [u8]),
}

impl<'a> Value<'a> {
    fn of_item(item: &'a Item) -> Self {
        let integer = item.integer().unwrap_or_default();
        match (item.bytes(), i64::try_from(integer), u64::try_from(integer)) {
            (Some(bytes), ..) => Self::Text(bytes),
            (None, Ok(signed), _) => Self::Number(TopNumber::Signed(signed)),
            (None, Err(_), natural) => {
                Self::Number(TopNumber::Unsigned(natural.unwrap_or(u64::MAX)))
            }
        }
    }
}

impl sapwood_sketch_t {
    fn new(sketch: AnySketch) -> Self {
        let text = match &sketch {
            AnySketch::PrefixTree(tree) => Some(to_c(tree.to_string())),
            _ => None,
        };
        let (entries, bins, nodes) = (Vec::new(), Vec::new(), Vec::new());
        let mut made = Self { sketch, entries, bins, nodes, text, _lent: Vec::new() };
        made.lay_out();
        made
    }

    /// Lays what can be lent as a list out as C reads it.
    fn lay_out(&mut self) {
        let Self { sketch, entries, bins, nodes, _lent: lent, .. } = self;
        let mut add = |counted: &Counted<'_>| entries.push(entry_of(counted, lent));
        match sketch {
            AnySketch::HeavyHitters(hitters) => {
                for hitter in hitters.hitters() {
                    let (at_least, at_most) = (hitter.at_least, hitter.at_most);
                    let value = Value::of_item(&hitter.item);
                    add(&Counted { value, at_least, at_most, ranks: None });
                }
            }
            AnySketch::Top(top) => {
                for entry in top.entries() {
                    let (value, times) = (Value::Number(entry.number), entry.count);
                    let ranks = Some(&entry.ranks);
                    add(&Counted { value, at_least: times, at_most: times, ranks });
                }
            }
            AnySketch::Union(set) => {
                for item in set.iter() {
                    let value = Value::of_item(item);
                    add(&Counted { value, at_least: 1, at_most: 1, ranks: None });
                }
            }
            AnySketch::Histogram(histogram) => {
                bins.extend(histogram.bins().map(|bin| sapwood_sketch_bin_t {
                    low: bin.low,
                    high: bin.high,
                    count: bin.count,
                }));
            }
            AnySketch::PrefixTree(tree) => {
                nodes.extend(tree.nodes().map(|node| node_of(&node, lent)));
            }
            _ => {}
        }
    }

    fn kind(&self) -> Kind {
        match self.sketch {
            AnySketch::Quantiles(_) => Kind::SAPWOOD_SKETCH_QUANTILES,
            AnySketch::Kll(_) => Kind::SAPWOOD_SKETCH_KLL,
            AnySketch::Distinct(_) => Kind::SAPWOOD_SKETCH_DISTINCT,
            AnySketch::HeavyHitters(_) => Kind::SAPWOOD_SKETCH_HEAVY_HITTERS,
            AnySketch::Top(_) => Kind::SAPWOOD_SKETCH_TOP,
            AnySketch::Histogram(_) => Kind::SAPWOOD_SKETCH_HISTOGRAM,
            AnySketch::Union(_) => Kind::SAPWOOD_SKETCH_UNION,
            AnySketch::PrefixTree(_) => Kind::SAPWOOD_SKETCH_PREFIX_TREE,
            _ => Kind::SAPWOOD_SKETCH_NONE,
        }
    }

    /// A question that only other kinds answer.
    pub(crate) fn cannot(&self, what: &str, kinds: &str) -> Failure {
        let name = self.sketch.name();
        Failure::usage(format!("sketch: '{name}' has no {what}; ask one of {kinds}"))
    }
}

fn entry_of(counted: &Counted<'_>, lent: &mut Vec<Lent>) -> sapwood_sketch_entry_t {
    let Counted { value, at_least, at_most, ranks } = counted;
    let text = if let Value::Text(bytes) = value { Some(*bytes) } else { None };
    let own = Lent::new(text.unwrap_or_default(), *ranks);
    let place: *const c_char = own.text.as_ptr().cast();
    let mut entry = sapwood_sketch_entry_t {
        kind: sapwood_type_t::SAPWOOD_TYPE_STRING as c_int,
        integer: 0,
        natural: 0,
        number: 0.0,
        text: if text.is_some() { place } else { std::ptr::null() },
        text_bytes: text.map_or(0, <[u8]>::len),
        at_least: *at_least,
        at_most: *at_most,
        ranks: own.ranks.as_ptr(),
        ranges: own.first_range(),
        range_count: own.ranges.len(),
    };
    lent.push(own);
    if let Value::Number(number) = value {
        entry.number = number.to_f64();
        let kind = match *number {
            TopNumber::Signed(integer) => {
                entry.integer = integer;
                sapwood_type_t::SAPWOOD_TYPE_INT64
            }
            TopNumber::Unsigned(natural) => {
                entry.natural = natural;
                sapwood_type_t::SAPWOOD_TYPE_UINT64
            }
            TopNumber::Double(_) => sapwood_type_t::SAPWOOD_TYPE_DOUBLE,
        };
        entry.kind = kind as c_int;
    }
    entry
}

fn node_of(node: &sapwood::PrefixNode<'_>, lent: &mut Vec<Lent>) -> sapwood_sketch_node_t {
    let own = Lent::new(node.name, Some(node.ranks));
    let made = sapwood_sketch_node_t {
        depth: node.depth,
        name: own.text.as_ptr().cast(),
        name_bytes: node.name.len(),
        ranks: own.ranks.as_ptr(),
        ranges: own.first_range(),
        range_count: own.ranges.len(),
        stacks: node.stacks,
        ending: node.ending,
    };
    lent.push(own);
    made
}

/// # Safety
/// `sketch` is NULL or alive.
unsafe fn lend<'a>(sketch: *const sapwood_sketch_t) -> Result<&'a sapwood_sketch_t> {
    // SAFETY: as the caller says.
    unsafe { sketch.as_ref() }.ok_or_else(|| Failure::usage("sketch: is NULL; read one first"))
}

/// Answers a question about a sketch.
///
/// # Safety
/// `sketch` is NULL or alive, `error` as for [`guard`].
pub(crate) unsafe fn ask(
    sketch: *const sapwood_sketch_t,
    error: *mut sapwood_error_t,
    answer: impl FnOnce(&sapwood_sketch_t) -> Result<()>,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe { guard(error, || answer(lend(sketch)?)) }
}

/// # Safety
/// `place` is NULL or has room for a `T`.
pub(crate) unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: as the caller says.
        unsafe { place.write(value) };
    }
}

/// Reads the sketch in a packet, of any kind: the answer of a stream whose last upward filter is a
/// sketch's, or what a filter of one's own was given. It does not need the packet any more.
///
/// # Safety
/// As the opening of the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_sketch_read(
    sketch: *mut *mut sapwood_sketch_t,
    packet: *const sapwood_packet_t,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the header's opening says.
    unsafe {
        guard(error, || {
            if sketch.is_null() {
                return Err(Failure::usage("sketch: no place to put the handle (NULL)"));
            }
            sketch.write(std::ptr::null_mut());
            let read = AnySketch::from_values(packet::lend(packet)?.values());
            let wrong = |error: sapwood::FilterError| {
                Failure::new(Code::SAPWOOD_ERROR_FORMAT, error.to_string())
            };
            let made = Box::new(sapwood_sketch_t::new(read.map_err(wrong)?));
            sketch.write(Box::into_raw(made));
            Ok(())
        })
    }
}

/// Gives a sketch back and sets the handle to NULL; nothing happens if it or `sketch` is NULL.
///
/// # Safety
/// `sketch` is NULL or points to a handle's variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_sketch_free(sketch: *mut *mut sapwood_sketch_t) {
    if sketch.is_null() {
        return;
    }
    // SAFETY: the caller's variable holds NULL or a sketch that was made by `Box::into_raw`.
    unsafe {
        let freed = sketch.replace(std::ptr::null_mut());
        if !freed.is_null() {
            shield((), || drop(Box::from_raw(freed)));
        }
    }
}

/// Which filter it is of: a sapwood_sketch_kind_t; SAPWOOD_SKETCH_NONE for NULL.
///
/// # Safety
/// `sketch` is NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_sketch_kind(sketch: *const sapwood_sketch_t) -> c_int {
    // SAFETY: as the caller says.
    unsafe { sketch.as_ref() }.map_or(Kind::SAPWOOD_SKETCH_NONE, sapwood_sketch_t::kind) as c_int
}

/// How many numbers, items or stacks were added, each as often as it came; the items of a union,
/// which are all different, and of `top` the numbers that were kept. 0 for `distinct`, which does
/// not know, and for NULL.
///
/// # Safety
/// `sketch` is NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_sketch_count(sketch: *const sapwood_sketch_t) -> u64 {
    // SAFETY: as the caller says.
    let Some(sketch) = (unsafe { sketch.as_ref() }) else { return 0 };
    shield(0, || match &sketch.sketch {
        AnySketch::Quantiles(quantiles) => quantiles.count(),
        AnySketch::Kll(kll) => kll.count(),
        AnySketch::HeavyHitters(hitters) => hitters.count(),
        AnySketch::Top(_) => {
            sketch.entries.iter().fold(0, |sum, entry| entry.at_least.saturating_add(sum))
        }
        AnySketch::Histogram(histogram) => histogram.count(),
        AnySketch::Union(set) => set.len() as u64,
        AnySketch::PrefixTree(tree) => tree.stacks(),
        _ => 0,
    })
}

/// How many numbers were left out because they are NaN, or infinite where that is no number to the
/// sketch; 0 for kinds that leave nothing out, and for NULL.
///
/// # Safety
/// `sketch` is NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_sketch_left_out(sketch: *const sapwood_sketch_t) -> u64 {
    // SAFETY: as the caller says.
    match unsafe { sketch.as_ref() }.map(|sketch| &sketch.sketch) {
        Some(AnySketch::Quantiles(quantiles)) => quantiles.left_out(),
        Some(AnySketch::Kll(kll)) => kll.left_out(),
        Some(AnySketch::Top(top)) => top.left_out(),
        Some(AnySketch::Histogram(histogram)) => histogram.left_out(),
        _ => 0,
    }
}

/// Whether nothing was cut off for the bound of a union or a prefix tree; true for other kinds,
/// false for NULL.
///
/// # Safety
/// `sketch` is NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_sketch_is_complete(sketch: *const sapwood_sketch_t) -> bool {
    // SAFETY: as the caller says.
    unsafe { sketch.as_ref() }.is_some_and(|sketch| match &sketch.sketch {
        AnySketch::Union(set) => set.is_complete(),
        AnySketch::PrefixTree(tree) => tree.is_complete(),
        _ => true,
    })
}

/// The items of `heavy-hitters` (the most frequent first), the numbers of `top` (the largest first)
/// or the items of `union` (integers by value, then strings by their bytes), lent until the sketch
/// is freed; NULL and 0 when there are none.
///
/// # Safety
/// `sketch` is NULL or alive, the others NULL or places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_sketch_entries(
    sketch: *const sapwood_sketch_t,
    entries: *mut *const sapwood_sketch_entry_t,
    count: *mut usize,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        ask(sketch, error, |sketch| {
            let has_some = matches!(
                sketch.sketch,
                AnySketch::HeavyHitters(_) | AnySketch::Top(_) | AnySketch::Union(_)
            );
            if !has_some {
                return Err(sketch.cannot("entries", "heavy-hitters, top, union"));
            }
            put(entries, lend_run(&sketch.entries, count));
            Ok(())
        })
    }
}

/// The bins of `histogram` from low to high, lent until the sketch is freed; of self-chosen ones,
/// from the first to the last that holds a number. NULL and 0 when there are none.
///
/// # Safety
/// `sketch` is NULL or alive, the others NULL or places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_sketch_bins(
    sketch: *const sapwood_sketch_t,
    bins: *mut *const sapwood_sketch_bin_t,
    count: *mut usize,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        ask(sketch, error, |sketch| {
            let AnySketch::Histogram(_) = &sketch.sketch else {
                return Err(sketch.cannot("bins", "histogram"));
            };
            put(bins, lend_run(&sketch.bins, count));
            Ok(())
        })
    }
}

/// How many numbers are below and above all bins of `histogram`.
///
/// # Safety
/// `sketch` is NULL or alive, the others NULL or places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_sketch_outside(
    sketch: *const sapwood_sketch_t,
    under: *mut u64,
    over: *mut u64,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        ask(sketch, error, |sketch| {
            let AnySketch::Histogram(histogram) = &sketch.sketch else {
                return Err(sketch.cannot("bins", "histogram"));
            };
            put(under, histogram.under());
            put(over, histogram.over());
            Ok(())
        })
    }
}

/// The nodes of `prefix-tree`, each before those below it, those of one parent sorted by name, lent
/// until the sketch is freed; NULL and 0 when there are none.
///
/// # Safety
/// `sketch` is NULL or alive, the others NULL or places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_sketch_nodes(
    sketch: *const sapwood_sketch_t,
    nodes: *mut *const sapwood_sketch_node_t,
    count: *mut usize,
    error: *mut sapwood_error_t,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        ask(sketch, error, |sketch| {
            let AnySketch::PrefixTree(_) = &sketch.sketch else {
                return Err(sketch.cannot("nodes", "prefix-tree"));
            };
            put(nodes, lend_run(&sketch.nodes, count));
            Ok(())
        })
    }
}

/// A prefix tree for people: a line for each node, indented by its depth, with the ranks in it;
/// lent until the sketch is freed. NULL for other kinds and for NULL.
///
/// # Safety
/// `sketch` is NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sapwood_sketch_text(sketch: *const sapwood_sketch_t) -> *const c_char {
    // SAFETY: as the caller says.
    let text = unsafe { sketch.as_ref() }.and_then(|sketch| sketch.text.as_ref());
    text.map_or(std::ptr::null(), |text| text.as_ptr())
}
