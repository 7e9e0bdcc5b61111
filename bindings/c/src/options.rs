//! Options of networks and streams: structs that begin with their size, so that they can grow.

use std::ffi::{c_char, c_int};
use std::mem::offset_of;
use std::path::PathBuf;
use std::time::Duration;

use sapwood::{
    FilterSpec, Hosts, Launcher, Network, NetworkBuilder, Policy, Program, Recovery, Shape,
    StreamBuilder, Topology, TransportKind, WaveRule,
};

use crate::error::{Failure, Result, sapwood_error_code_t as Code};
use crate::filters;
use crate::text;

/// What the links of a network are made of.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sapwood_transport_t {
    /// Shared memory within a host, TCP between hosts.
    SAPWOOD_TRANSPORT_AUTOMATIC = 0,
    /// Unix-domain sockets.
    SAPWOOD_TRANSPORT_UNIX = 1,
    /// TCP, bound to the loopback interface.
    SAPWOOD_TRANSPORT_TCP = 2,
    /// Shared memory between processes of one user on one host.
    SAPWOOD_TRANSPORT_SHM = 3,
}

/// Whether links are encrypted. Every link proves the network's key in any case.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sapwood_encryption_t {
    /// TCP yes, Unix-domain sockets no.
    SAPWOOD_ENCRYPTION_DEFAULT = 0,
    /// Every link.
    SAPWOOD_ENCRYPTION_ON = 1,
    /// No link.
    SAPWOOD_ENCRYPTION_OFF = 2,
}

/// The behaviour after the death of a process of the tree.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sapwood_recovery_t {
    /// Those below it find a new parent.
    SAPWOOD_RECOVERY_ON = 0,
    /// The processes below it are lost, too.
    SAPWOOD_RECOVERY_OFF = 1,
}

/// When a wave is complete.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sapwood_wave_t {
    /// When all members have sent or are known to be lost.
    SAPWOOD_WAVE_ALL = 0,
    /// As SAPWOOD_WAVE_ALL, but no later than `wave_timeout_ms` after the first packet. Each level
    /// of the tree waits its share: in one of two levels, the parents of back-ends wait half of it.
    SAPWOOD_WAVE_TIMEOUT = 1,
    /// At once: every packet is a wave of its own.
    SAPWOOD_WAVE_IMMEDIATE = 2,
}

/// What happens when a stream's window is full.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sapwood_policy_t {
    /// Senders wait.
    SAPWOOD_POLICY_BLOCK = 0,
    /// The oldest waiting packet is dropped and counted.
    SAPWOOD_POLICY_DROP_OLDEST = 1,
}

/// What a network is to be. Begin with SAPWOOD_NETWORK_OPTIONS_INIT; all members after `size` may
/// stay 0 or NULL, except that one of the two topologies or the hosts are needed.
///
/// All of it is read while the network opens and need not be kept.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sapwood_network_options_t {
    /// sizeof(sapwood_network_options_t) of the header that the program was compiled with.
    pub size: usize,
    /// The shape, such as "16^2" or "4x8".
    pub topology: *const c_char,
    /// The text of a topology file in MRNet's format, instead of `topology`.
    pub topology_file_text: *const c_char,
    /// The back-ends' program and arguments, ending with NULL. If it is NULL itself, back-ends
    /// attach by themselves: see `sapwood_network_write_attach_file`.
    pub back_end_argv: *const *const c_char,
    /// Variables that are set for the back-ends, each as "NAME=value", ending with NULL; may be
    /// NULL.
    pub back_end_environment: *const *const c_char,
    /// The program that is run for communication processes, `sapwood-node`. NULL: what SAPWOOD_NODE
    /// names, or `sapwood-node` beside this program or on the search path.
    pub node_program: *const c_char,
    /// A sapwood_transport_t.
    pub transport: c_int,
    /// A sapwood_encryption_t.
    pub encryption: c_int,
    /// How long the tree may take to start, in milliseconds; 0 for 30 seconds, or 60 where other
    /// hosts take part.
    pub startup_timeout_ms: i32,
    /// Not 0: the network opens even if some processes do not start; they are reported as events.
    pub allow_missing: c_int,
    /// Not 0: every leaf of the topology is a communication process at which this many back-ends
    /// may attach by themselves, as in MRNet's attach mode.
    pub attach_per_leaf: u32,
    /// A sapwood_recovery_t.
    pub recovery: c_int,
    /// How long a filter from a file may take for one wave, in milliseconds, before it is given up:
    /// its waves then fail with that reason. 0 for 10 seconds, -1 for ever.
    pub filter_limit_ms: i32,
    /// Hosts as a nodeset, such as "node[01-16]": one back-end runs on each, and communication
    /// processes beside the first back-ends below them. `topology` is then the shape, with as many
    /// back-ends, or NULL for a tree in which no process reaches more than 32 hosts. NULL: this
    /// machine alone, or the hosts of `topology_file_text`.
    pub hosts: *const c_char,
    /// How other hosts are reached: "ssh", "slurm", "local" for not at all, or "auto", which is
    /// also meant by NULL: as the hosts and the environment demand.
    pub launcher: *const c_char,
    /// The remote shell and its own arguments, ending with NULL, instead of `ssh` or of the value
    /// of SAPWOOD_RSH says; may be NULL.
    pub remote_shell: *const *const c_char,
    /// The command by which hosts that are reached by a remote shell run what is started there,
    /// such as "nice", "-n", "10", ending with NULL; may be NULL.
    pub remote_prefix: *const *const c_char,
    /// The number of the Slurm allocation in which processes are started; NULL for the one that
    /// this process is in.
    pub slurm_job: *const c_char,
    /// How long a host may take to answer before it is given up, in milliseconds; 0 for 10 seconds.
    pub connect_timeout_ms: i32,
}

/// What a stream is to be. Begin with SAPWOOD_STREAM_OPTIONS_INIT; all members after `size` may
/// stay 0 or NULL.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sapwood_stream_options_t {
    /// sizeof(sapwood_stream_options_t) of the header that the program was compiled with.
    pub size: usize,
    /// Filters on the way up, in order, separated by commas, such as "sum". NULL: packets pass as
    /// they are. Processes may have different filters: "sum@9;max@11-12;null@*" names the ranks of
    /// each, and with `*` the filter of all others.
    pub up: *const c_char,
    /// Filters on the way down.
    pub down: *const c_char,
    /// A sapwood_wave_t.
    pub wave: c_int,
    /// The longest wait of SAPWOOD_WAVE_TIMEOUT, in milliseconds.
    pub wave_timeout_ms: u32,
    /// A sapwood_policy_t.
    pub policy: c_int,
    /// How many bytes may be under way per link and direction; 0 for the default.
    pub window_bytes: u32,
    /// A text that every filter from a file on the way up is given as its one parameter; NULL for
    /// none.
    pub up_text: *const c_char,
    /// The same for the way down.
    pub down_text: *const c_char,
    /// A synchronisation rule from a file, which decides besides `wave` when a wave that is not
    /// complete is forwarded, such as "native:libmine.so#quorum"; its name in a file that was
    /// shipped is given by `sapwood_network_ship`. NULL for none.
    pub rule: *const c_char,
    /// A text that the rule is given as its one parameter; NULL for none.
    pub rule_text: *const c_char,
    /// Not 0: the filters run in back-ends, too, on what each of them sends and receives: in those
    /// that `sapwood_back_end_attach_with_filters` has attached. Each packet that a filter emits
    /// there is a wave of that back-end.
    pub filters_at_back_ends: c_int,
}

/// What the first version of the options had, in bytes. Members come behind it.
const NETWORK_OPTIONS_BYTES_MIN: usize = offset_of!(sapwood_network_options_t, filter_limit_ms);
const STREAM_OPTIONS_BYTES_MIN: usize = offset_of!(sapwood_stream_options_t, rule);

/// Reads an options struct of the size that it names: a shorter one, of an older header, lacks what
/// was added since; a longer one, of a newer header, must not use what is not known here.
///
/// # Safety
/// `options` is NULL or points to a struct that begins with its size. `T` is one of the structs
/// above, for which zeros are a value.
unsafe fn read<T: Copy>(what: &str, options: *const T, least: usize) -> Result<T> {
    let bytes = options.cast::<u8>();
    if bytes.is_null() {
        return Err(Failure::usage(format!("{what} options: are NULL")));
    }
    // SAFETY: the struct begins with its size, and has at least that many bytes.
    unsafe {
        let size = bytes.cast::<usize>().read_unaligned();
        if size < least || size > OPTIONS_BYTES_MAX {
            let text =
                format!("{what} options: a size of {size} is none; begin with the INIT macro");
            return Err(Failure::usage(text));
        }
        let known = size.min(size_of::<T>());
        if (known..size).any(|at| bytes.add(at).read() != 0) {
            let text = format!("{what} options: the program is newer than this library");
            return Err(Failure::usage(text));
        }
        let mut read = std::mem::zeroed::<T>();
        (&raw mut read).cast::<u8>().copy_from_nonoverlapping(bytes, known);
        Ok(read)
    }
}

/// No options struct of any version is longer, so a size beyond it was never set, in bytes.
const OPTIONS_BYTES_MAX: usize = 4096;

/// The network that the options describe.
///
/// # Safety
/// `options` and what it points to are as its documentation says.
pub(crate) unsafe fn network(options: *const sapwood_network_options_t) -> Result<NetworkBuilder> {
    // SAFETY: as the caller says.
    let options = unsafe { read("network", options, NETWORK_OPTIONS_BYTES_MIN) }?;
    // SAFETY: as the caller says.
    let spec = unsafe { text::optional("topology", options.topology) }?;
    // SAFETY: as the caller says.
    let file = unsafe { text::optional("topology file text", options.topology_file_text) }?;
    // SAFETY: as the caller says.
    let hosts = unsafe { text::optional("hosts", options.hosts) }?;
    let topology = topology(spec, file, hosts, options.attach_per_leaf)?;
    let mut builder = Network::builder(topology).registry(filters::registry());
    // SAFETY: as the caller says.
    builder = unsafe { launched(builder, &options) }?;
    // SAFETY: as the caller says.
    if let Some(program) = unsafe { program(&options) }? {
        builder = builder.back_end(program);
    }
    if !options.node_program.is_null() {
        // SAFETY: as the caller says.
        let program: PathBuf = unsafe { text::path("node program", options.node_program) }?;
        builder = builder.node_program(program);
    }
    builder = builder.transport(match options.transport {
        t if t == sapwood_transport_t::SAPWOOD_TRANSPORT_AUTOMATIC as c_int => {
            TransportKind::Automatic
        }
        t if t == sapwood_transport_t::SAPWOOD_TRANSPORT_UNIX as c_int => TransportKind::Unix,
        t if t == sapwood_transport_t::SAPWOOD_TRANSPORT_TCP as c_int => TransportKind::Tcp,
        t if t == sapwood_transport_t::SAPWOOD_TRANSPORT_SHM as c_int => TransportKind::Shm,
        other => return Err(unknown("transport", other)),
    });
    builder = match options.encryption {
        e if e == sapwood_encryption_t::SAPWOOD_ENCRYPTION_DEFAULT as c_int => builder,
        e if e == sapwood_encryption_t::SAPWOOD_ENCRYPTION_ON as c_int => builder.encryption(true),
        e if e == sapwood_encryption_t::SAPWOOD_ENCRYPTION_OFF as c_int => {
            builder.encryption(false)
        }
        other => return Err(unknown("encryption", other)),
    };
    if !is_recovering(options.recovery)? {
        builder = builder.recovery(Recovery::off());
    }
    if options.startup_timeout_ms != 0 {
        builder = builder.startup_timeout(text::limited(options.startup_timeout_ms)?);
    }
    builder = match options.filter_limit_ms {
        0 => builder,
        limit => builder.filter_limit(text::wait(limit)?.unwrap_or(Duration::ZERO)),
    };
    Ok(if options.allow_missing == 0 { builder } else { builder.allow_missing() })
}

/// How the hosts are reached.
///
/// # Safety
/// The texts and lists are as their documentation says.
unsafe fn launched(
    mut builder: NetworkBuilder,
    options: &sapwood_network_options_t,
) -> Result<NetworkBuilder> {
    // SAFETY: as the caller says.
    if let Some(name) = unsafe { text::optional("launcher", options.launcher) }? {
        let launcher = match name.parse::<Launcher>() {
            Ok(Launcher::Attach) => {
                let text = "launcher: 'attach' is for programs; write an attach file instead";
                return Err(Failure::usage(text));
            }
            named => named.map_err(|text| Failure::usage(format!("launcher: {text}")))?,
        };
        builder = builder.launcher(launcher);
    }
    // SAFETY: as the caller says.
    if let Some(words) = unsafe { text::list("remote_shell", options.remote_shell) }? {
        builder = builder.remote_shell(words);
    }
    // SAFETY: as the caller says.
    if let Some(words) = unsafe { text::list("remote_prefix", options.remote_prefix) }? {
        builder = builder.remote_prefix(words);
    }
    // SAFETY: as the caller says.
    if let Some(job) = unsafe { text::optional("slurm_job", options.slurm_job) }? {
        builder = builder.slurm_job(job);
    }
    Ok(match options.connect_timeout_ms {
        0 => builder,
        time => builder.connect_timeout(text::limited(time)?),
    })
}

/// Whether a sapwood_recovery_t is SAPWOOD_RECOVERY_ON.
pub(crate) fn is_recovering(recovery: c_int) -> Result<bool> {
    match recovery {
        r if r == sapwood_recovery_t::SAPWOOD_RECOVERY_ON as c_int => Ok(true),
        r if r == sapwood_recovery_t::SAPWOOD_RECOVERY_OFF as c_int => Ok(false),
        other => Err(unknown("recovery", other)),
    }
}

/// The topology of a shape or of the text of a file, whose leaves may take back-ends that attach.
pub(crate) fn topology(
    spec: Option<&str>,
    file: Option<&str>,
    hosts: Option<&str>,
    attach_per_leaf: u32,
) -> Result<Topology> {
    let shape = spec.map(str::parse::<Shape>).transpose().map_err(sapwood::Error::from)?;
    let topology = match (shape, file, hosts) {
        (Some(shape), None, None) => Ok(Topology::from_shape(&shape, &Hosts::local())),
        (None, Some(file), None) => Topology::from_file_text(file),
        (shape, None, Some(hosts)) => Topology::on_nodes(hosts, shape.as_ref()),
        (_, Some(_), Some(_)) => {
            return Err(Failure::usage("hosts: a topology file names its own; give one of both"));
        }
        _ => return Err(Failure::usage("topology: give one of topology and topology_file_text")),
    };
    let topology = topology.and_then(|topology| match attach_per_leaf {
        0 => Ok(topology),
        per_leaf => topology.without_back_ends(per_leaf),
    });
    Ok(topology.map_err(sapwood::Error::from)?)
}

/// # Safety
/// The lists are as their documentation says.
unsafe fn program(options: &sapwood_network_options_t) -> Result<Option<Program>> {
    // SAFETY: as the caller says.
    let words = unsafe { text::list("back_end_argv", options.back_end_argv) }?;
    // SAFETY: as the caller says.
    let environment = unsafe { text::list("back_end_environment", options.back_end_environment) }?;
    let Some(words) = words else { return Ok(None) };
    let Some((name, arguments)) = words.split_first() else {
        return Err(Failure::usage("back_end_argv: is empty; it begins with the program"));
    };
    let mut program = Program::new(name);
    for argument in arguments {
        program = program.argument(*argument);
    }
    for variable in environment.unwrap_or_default() {
        let Some((name, value)) = variable.split_once('=') else {
            let text = format!("back_end_environment: '{variable}' is no NAME=value");
            return Err(Failure::usage(text));
        };
        program = program.variable(name, value);
    }
    Ok(Some(program))
}

/// Adds the options to a stream that is about to be opened; NULL changes nothing.
///
/// # Safety
/// `options` and what it points to are as its documentation says.
pub(crate) unsafe fn stream(
    mut builder: StreamBuilder,
    options: *const sapwood_stream_options_t,
) -> Result<StreamBuilder> {
    if options.is_null() {
        return Ok(builder);
    }
    // SAFETY: as the caller says.
    let options = unsafe { read("stream", options, STREAM_OPTIONS_BYTES_MIN) }?;
    // SAFETY: as the caller says.
    let up_text = unsafe { text::optional("up_text", options.up_text) }?;
    // SAFETY: as the caller says.
    for filter in specs(unsafe { text::optional("up", options.up) }?, up_text)? {
        builder = builder.up(filter);
    }
    // SAFETY: as the caller says.
    let down_text = unsafe { text::optional("down_text", options.down_text) }?;
    // SAFETY: as the caller says.
    for filter in specs(unsafe { text::optional("down", options.down) }?, down_text)? {
        builder = builder.down(filter);
    }
    builder = builder.wave(match options.wave {
        w if w == sapwood_wave_t::SAPWOOD_WAVE_ALL as c_int => WaveRule::All,
        w if w == sapwood_wave_t::SAPWOOD_WAVE_TIMEOUT as c_int => {
            WaveRule::Timeout { milliseconds: options.wave_timeout_ms }
        }
        w if w == sapwood_wave_t::SAPWOOD_WAVE_IMMEDIATE as c_int => WaveRule::Immediate,
        other => return Err(unknown("wave", other)),
    });
    builder = builder.policy(match options.policy {
        p if p == sapwood_policy_t::SAPWOOD_POLICY_BLOCK as c_int => Policy::Block,
        p if p == sapwood_policy_t::SAPWOOD_POLICY_DROP_OLDEST as c_int => Policy::DropOldest,
        other => return Err(unknown("policy", other)),
    });
    // SAFETY: as the caller says.
    let rule_text = unsafe { text::optional("rule_text", options.rule_text) }?;
    // SAFETY: as the caller says.
    if let Some(rule) = unsafe { text::optional("rule", options.rule) }? {
        builder = builder.rule(filters::rule(rule, rule_text));
    }
    if options.filters_at_back_ends != 0 {
        builder = builder.at_back_ends();
    }
    let window = options.window_bytes;
    Ok(if window == 0 { builder } else { builder.window_bytes(window) })
}

/// The filters of a comma list, each known to be one.
fn specs(list: Option<&str>, parameter: Option<&str>) -> Result<Vec<FilterSpec>> {
    let registry = filters::registry();
    let words = list.unwrap_or("").split(',').map(str::trim).filter(|word| !word.is_empty());
    words
        .map(|word| {
            let spec = filters::spec(word, parameter);
            if filters::is_from_file(&spec.name) {
                // Whether there is such a file is known when the stream opens.
                return Ok(spec);
            }
            match registry.make(&spec.name, spec.parameters.as_ref()) {
                Ok(_) => Ok(spec),
                Err(error) => Err(Failure::new(Code::SAPWOOD_ERROR_FILTER, error.to_string())),
            }
        })
        .collect()
}

fn unknown(what: &str, value: c_int) -> Failure {
    Failure::usage(format!("{what}: {value} is none of its constants"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Newer {
        known: sapwood_stream_options_t,
        added: u64,
    }

    fn newer(size: usize, added: u64) -> Result<sapwood_stream_options_t> {
        let least = size_of::<sapwood_stream_options_t>();
        // SAFETY: all members may be zero.
        let mut options = Newer { added, ..unsafe { std::mem::zeroed() } };
        options.known.size = size;
        options.known.window_bytes = 7;
        // SAFETY: a struct that begins with its size, or with a number that is refused.
        unsafe { read("stream", (&raw const options).cast(), least) }
    }

    #[test]
    fn options_of_a_newer_header_are_read_if_they_ask_for_nothing_new() {
        let size = size_of::<Newer>();
        assert_eq!(newer(size, 0).expect("nothing new").window_bytes, 7);
        assert!(newer(size, 1).err().expect("something new").text.contains("newer"));
    }

    #[test]
    fn options_without_their_size_are_refused() {
        for size in [0, 8, usize::MAX] {
            assert!(newer(size, 0).err().expect("no size").text.contains("INIT"), "{size}");
        }
    }

    #[test]
    fn a_comma_list_names_filters_in_order() {
        let named = specs(Some(" sum, count,"), None).expect("filters");
        let names: Vec<&str> = named.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names, ["sum", "count"]);
        assert!(specs(None, None).expect("none").is_empty());
        let error = specs(Some("sum,summ"), None).expect_err("unknown");
        assert_eq!(error.code, Code::SAPWOOD_ERROR_FILTER);
        assert!(error.text.starts_with("filter 'summ' is not known"), "{}", error.text);
    }
}
