//! A loaded shared object and the filters that it says it has.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::io::Write as _;
use std::sync::{Arc, Mutex, Once, PoisonError};

use object::{Object as _, ObjectSegment as _};
use sapwood_filter::ShippedFile;

use super::interface::{RawFilter, RawLibrary};
use crate::file::Digest;
use crate::held::HeldFile;
use crate::source::find_in;
use crate::{ExtensionError, INTERFACE_VERSION};

/// The one symbol that a file of filters exports.
const SYMBOL: &CStr = c"sapwood_filter_v1";

/// Most filters in one file.
const FILTERS_MAX: u32 = 1024;

type Entry = unsafe extern "C" fn() -> *const RawLibrary;

/// A shared object. It stays loaded until the process ends: it may have started threads or
/// registered functions, and these would crash if its code were unmapped.
pub(crate) struct Library {
    file: String,
    filters: Vec<(String, RawFilter)>,
}

/// What was loaded from memory in this process, which many networks may share.
static LOADED: Mutex<BTreeMap<Digest, Arc<Library>>> = Mutex::new(BTreeMap::new());

// SAFETY: what it points to is constant data and functions of a loaded object, which stay; the
// interface demands that different instances may be made and used at the same time.
unsafe impl Send for Library {}
// SAFETY: as above; nothing of it is ever changed.
unsafe impl Sync for Library {}

impl Library {
    /// Loads a shipped file with the right checksum, unless it was before.
    pub(super) fn load_bytes(file: &ShippedFile<'_>) -> Result<Arc<Self>, ExtensionError> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = loaded.get(file.digest) {
            return Ok(Arc::clone(library));
        }
        let held = HeldFile::new(file.name, file.bytes)?;
        let library = Arc::new(Self::load(file.name, &held.path())?);
        loaded.insert(*file.digest, Arc::clone(&library));
        Ok(library)
    }

    /// Loads the file at a path; `file` is what messages call it.
    pub(super) fn load(file: &str, path: &str) -> Result<Self, ExtensionError> {
        let load = |reason: String| ExtensionError::Load { file: file.to_string(), reason };
        let c_path = CString::new(path).map_err(|error| load(error.to_string()))?;
        check_whole(path).map_err(load)?;
        let loading = Loading::begin(file);
        // SAFETY: the path is a text with an end. That the object's own initialisers are sound is
        // what trusting it means.
        let handle = unsafe { libc::dlopen(c_path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        drop(loading);
        if handle.is_null() {
            return Err(load(loader_error().replace(path, file)));
        }
        // SAFETY: the handle is one that the loader has just given, and the name has an end.
        let symbol = unsafe { libc::dlsym(handle, SYMBOL.as_ptr()) };
        if symbol.is_null() {
            return Err(ExtensionError::Symbol { file: file.to_string() });
        }
        // SAFETY: a function of that name has this type, says the header.
        let entry = unsafe { std::mem::transmute::<*mut libc::c_void, Entry>(symbol) };
        // SAFETY: as above; it takes nothing and gives constant data.
        let library = unsafe { entry().as_ref() };
        let filters = read_filters(file, library)?;
        Ok(Self { file: file.to_string(), filters })
    }

    /// The filter of a name, or with an empty one the only filter.
    pub(super) fn find(&self, name: &str) -> Result<(&str, RawFilter), ExtensionError> {
        find_in(&self.filters, &self.file, name)
    }
}

/// Refuses a shared object of which the end is missing: the loader would map what is not there, and
/// the process end when it is touched. What is no shared object is left to the loader, which says
/// so.
fn check_whole(path: &str) -> Result<(), String> {
    let Ok(bytes) = std::fs::read(path) else { return Ok(()) };
    if !bytes.starts_with(&object::elf::ELFMAG) {
        return Ok(());
    }
    let parsed = object::File::parse(&*bytes).map_err(|error| error.to_string())?;
    let ends_inside = |segment: object::Segment<'_, '_>| {
        let (start, length) = segment.file_range();
        start.checked_add(length).is_some_and(|end| end <= bytes.len() as u64)
    };
    match parsed.segments().all(ends_inside) {
        true => Ok(()),
        false => Err(format!("its end is missing: the file has {} bytes", bytes.len())),
    }
}

/// The file that is being loaded. An initialiser of its that ends the process ends it here, and
/// nothing else would say whose doing that was.
static LOADING: Mutex<Option<String>> = Mutex::new(None);

/// A file is being loaded until this is dropped.
struct Loading;

impl Loading {
    fn begin(file: &str) -> Self {
        static SAY: Once = Once::new();
        SAY.call_once(|| {
            // SAFETY: the function takes and gives nothing, and stays as long as this library does.
            // If there is no room for it, a process may end without a word.
            let _ = unsafe { libc::atexit(say_who_has_ended_this) };
        });
        *LOADING.lock().unwrap_or_else(PoisonError::into_inner) = Some(file.to_string());
        Self
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        *LOADING.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Called when the process ends in an orderly way.
extern "C" fn say_who_has_ended_this() {
    if let Ok(loading) = LOADING.try_lock()
        && let Some(file) = &*loading
    {
        let words = "have ended this process while they were being loaded";
        // If standard error is closed, there is no other place to report it.
        let _ = writeln!(std::io::stderr(), "sapwood: filters '{file}' {words}");
    }
}

fn read_filters(
    file: &str,
    library: Option<&RawLibrary>,
) -> Result<Vec<(String, RawFilter)>, ExtensionError> {
    let wrong = |reason: &str| ExtensionError::Library {
        file: file.to_string(),
        reason: reason.to_string(),
    };
    let Some(library) = library else { return Err(wrong("its sapwood_filter_v1 gives NULL")) };
    if library.version != INTERFACE_VERSION {
        let version = library.version;
        return Err(ExtensionError::Version { file: file.to_string(), version });
    }
    if library.filter_bytes as usize != size_of::<RawFilter>() {
        return Err(wrong("its filter_bytes is not sizeof(sapwood_filter_t)"));
    }
    if library.filters.is_null() || !(1..=FILTERS_MAX).contains(&library.filter_count) {
        return Err(wrong("it states no filters, or too many"));
    }
    // SAFETY: the library of this version states this number of filters of this size at that
    // address.
    let filters =
        unsafe { std::slice::from_raw_parts(library.filters, library.filter_count as usize) };
    let mut named = Vec::with_capacity(filters.len());
    for filter in filters {
        if filter.name.is_null() {
            return Err(wrong("one of its filters has no name"));
        }
        // SAFETY: the header asks for a text with an end.
        let name = unsafe { CStr::from_ptr(filter.name) }.to_string_lossy().into_owned();
        named.push((name, *filter));
    }
    Ok(named)
}

/// What the loader says of its last failure in this thread.
fn loader_error() -> String {
    // SAFETY: it takes nothing; what it gives is a text with an end, or null.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return String::from("the loader gives no reason");
    }
    // SAFETY: not null, and good until the loader is used again in this thread.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Library({}, {} filters)", self.file, self.filters.len())
    }
}
