//! A file that processes have mapped: how its functions are left, and what they are called.
//!
//! The sections that tell how to unwind and the symbols are read once, whatever the number of
//! processes that have it mapped. Where the file, or the separate file for its build id, has debug
//! information, names come with file and line, and functions that were inlined are told.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::Loader;
use addr2line::gimli::{BaseAddresses, EhFrame, EhFrameHdr, LittleEndian, UnwindSection};
use framehop::ModuleSectionInfo;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, ReadRef};

/// Bytes that many processes share.
pub(crate) type Bytes = Arc<[u8]>;

/// Folders of separate debug files.
const DEBUG_FOLDER: &str = "/usr/lib/debug/.build-id";
/// A name of a function is cut behind this many characters.
const NAME_CHARACTERS_MAX: usize = 160;
/// Sections that tell how functions are left.
const SECTIONS: [&str; 4] = [".eh_frame", ".eh_frame_hdr", ".text", ".got"];

/// What is known of a file.
pub(crate) struct Module {
    /// The file's name.
    label: String,
    /// Whether it is a library, whose functions are told with its name.
    is_library: bool,
    sections: Vec<Section>,
    segments: Vec<Segment>,
    symbols: Vec<Symbol>,
    names: String,
    debug: Option<Loader>,
    /// Whether it runs Python programs.
    pub(crate) is_python: bool,
}

/// A section that tells how functions are left.
struct Section {
    name: &'static str,
    /// Its addresses.
    place: Range<u64>,
    data: Bytes,
}

/// Where a part of the file lies in memory.
struct Segment {
    /// Where it begins in the file.
    offset: u64,
    address: u64,
    length: u64,
}

impl Segment {
    const fn at((offset, length): (u64, u64), address: u64) -> Self {
        Self { offset, address, length }
    }
}

/// A function.
struct Symbol {
    address: u64,
    length: u64,
    name: Range<usize>,
}

impl Module {
    /// Reads a file. `path` is where it can be opened, `shown` its name in the process.
    pub(crate) fn open(path: &Path, shown: &str) -> Option<Self> {
        let file = File::open(path).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let cache = ReadCache::new(file);
        let elf = object::File::parse(&cache).ok()?;
        let mut module = Self::read(&elf, shown);
        let separate = separate_file(&elf);
        if let Some(separate) = &separate
            && let Ok(file) = File::open(separate)
            && let Ok(elf) = object::File::parse(&ReadCache::new(file))
        {
            module.add_symbols(&elf);
        }
        module.order_symbols();
        let has_debug = elf.section_by_name(".debug_info").is_some();
        module.debug = match separate {
            Some(separate) => Loader::new(separate).ok(),
            None if has_debug => Loader::new(path).ok(),
            None => None,
        };
        Some(module)
    }

    /// Reads what the kernel maps into each process.
    pub(crate) fn of_memory(bytes: &[u8], shown: &str) -> Option<Self> {
        let elf = object::File::parse(bytes).ok()?;
        let mut module = Self::read(&elf, shown);
        module.order_symbols();
        Some(module)
    }

    fn read<'data, R: ReadRef<'data>>(elf: &object::File<'data, R>, shown: &str) -> Self {
        let section = |name: &'static str| {
            let section = elf.section_by_name(name)?;
            // Only its place matters of the code.
            let data = if name == ".text" { &[][..] } else { section.data().unwrap_or_default() };
            let end = section.address().saturating_add(section.size());
            let place = section.address()..end;
            Some(Section { name, place, data: Bytes::from(data) })
        };
        let sections = SECTIONS.into_iter().filter_map(section).collect();
        let file = Path::new(shown).file_name().map_or(shown.into(), |name| name.to_string_lossy());
        let mut module = Self {
            is_library: file.contains(".so"),
            label: file.into_owned(),
            sections,
            segments: elf
                .segments()
                .map(|one| Segment::at(one.file_range(), one.address()))
                .collect(),
            symbols: Vec::new(),
            names: String::new(),
            debug: None,
            is_python: false,
        };
        module.add_symbols(elf);
        module
    }

    fn add_symbols<'data, R: ReadRef<'data>>(&mut self, elf: &object::File<'data, R>) {
        for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
            let is_code = symbol.kind() == object::SymbolKind::Text && symbol.is_definition();
            let Some(name) = symbol.name().ok().filter(|name| is_code && !name.is_empty()) else {
                continue;
            };
            self.is_python |= name == "Py_RunMain" || name == "PyEval_EvalCode";
            let begin = self.names.len();
            self.names.push_str(name);
            self.symbols.push(Symbol {
                address: symbol.address(),
                length: symbol.size(),
                name: begin..self.names.len(),
            });
        }
    }

    /// Of several names of one address the one without underlines in front is kept: it is what the
    /// program's text says.
    fn order_symbols(&mut self) {
        let names = &self.names;
        let order = |symbol: &Symbol| {
            let name = &names[symbol.name.clone()];
            (symbol.address, name.starts_with('_') && !name.starts_with("_Z"), name)
        };
        self.symbols.sort_by(|a, b| order(a).cmp(&order(b)));
        self.symbols.dedup_by_key(|symbol| symbol.address);
    }

    /// The address in the file of a place in the file.
    pub(crate) fn address_at(&self, offset: u64) -> Option<u64> {
        let holds = |one: &&Segment| {
            // Mappings begin at whole pages, segments where they like.
            let end = one.offset.saturating_add(one.length);
            offset.saturating_add(0xfff) >= one.offset && offset < end
        };
        let segment = self.segments.iter().find(holds)?;
        Some(segment.address.wrapping_add(offset).wrapping_sub(segment.offset))
    }

    /// The names of what runs at an address of the file, the outermost first: functions that were
    /// inlined come after those that they were inlined into.
    pub(crate) fn names(&self, address: u64) -> Vec<String> {
        let mut names = self.debug_names(address);
        if names.is_empty() {
            let name =
                self.symbol(address).map(|name| cut(&addr2line::demangle_auto(name.into(), None)));
            names.push(match name {
                Some(name) if self.is_library => format!("{name} [{}]", self.label),
                Some(name) => name,
                None => {
                    let begin = self.function_begin(address).unwrap_or(address);
                    format!("{}+{begin:#x}", self.label)
                }
            });
        }
        names
    }

    /// The symbol that holds an address.
    pub(crate) fn symbol(&self, address: u64) -> Option<&str> {
        let after = self.symbols.partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols.get(after.checked_sub(1)?)?;
        // What is written in assembler may have no length.
        let is_inside = address - symbol.address < symbol.length || symbol.length == 0;
        is_inside.then(|| &self.names[symbol.name.clone()])
    }

    /// Where the function begins that holds an address, as far as it can be unwound.
    fn function_begin(&self, address: u64) -> Option<u64> {
        let section = |name: &str| self.sections.iter().find(|section| section.name == name);
        let (frames, header) = (section(".eh_frame")?, section(".eh_frame_hdr")?);
        let mut bases = BaseAddresses::default()
            .set_eh_frame(frames.place.start)
            .set_eh_frame_hdr(header.place.start);
        if let Some(code) = section(".text") {
            bases = bases.set_text(code.place.start);
        }
        let header = EhFrameHdr::new(&header.data, LittleEndian).parse(&bases, 8).ok()?;
        let frames = EhFrame::new(&frames.data, LittleEndian);
        let read = EhFrame::cie_from_offset;
        let function = header.table()?.fde_for_address(&frames, &bases, address, read).ok()?;
        Some(function.initial_address())
    }

    fn debug_names(&self, address: u64) -> Vec<String> {
        let Some(Ok(mut frames)) = self.debug.as_ref().map(|debug| debug.find_frames(address))
        else {
            return Vec::new();
        };
        let mut names = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|name| name.demangle().ok());
            let Some(name) = name.map(|name| cut(&name)) else { break };
            let file = frame.location.as_ref().and_then(|location| {
                let file = Path::new(location.file?).file_name()?.to_string_lossy().into_owned();
                Some(location.line.map_or(file.clone(), |line| format!("{file}:{line}")))
            });
            names.push(match file {
                Some(file) => format!("{name} ({file})"),
                None => name,
            });
        }
        names.reverse();
        names
    }
}

/// The file of debug information for a build id.
fn separate_file<'data, R: ReadRef<'data>>(elf: &object::File<'data, R>) -> Option<PathBuf> {
    let id = elf.build_id().ok()??;
    let (first, rest) = id.split_first()?;
    let rest = rest.iter().fold(String::new(), |rest, byte| format!("{rest}{byte:02x}"));
    let path = PathBuf::from(format!("{DEBUG_FOLDER}/{first:02x}/{rest}.debug"));
    path.is_file().then_some(path)
}

fn cut(name: &str) -> String {
    if name.chars().count() <= NAME_CHARACTERS_MAX {
        return name.to_owned();
    }
    name.chars().take(NAME_CHARACTERS_MAX).chain("...".chars()).collect()
}

/// How `framehop` gets the sections of a module.
pub(crate) struct Sections<'a>(pub(crate) &'a Module);

impl Sections<'_> {
    fn find(&self, name: &[u8]) -> Option<&Section> {
        self.0.sections.iter().find(|section| section.name.as_bytes() == name)
    }
}

impl ModuleSectionInfo<Bytes> for Sections<'_> {
    fn base_svma(&self) -> u64 {
        0
    }

    fn section_svma_range(&mut self, name: &[u8]) -> Option<Range<u64>> {
        self.find(name).map(|section| section.place.clone())
    }

    fn section_data(&mut self, name: &[u8]) -> Option<Bytes> {
        self.find(name).map(|section| section.data.clone()).filter(|data| !data.is_empty())
    }
}
