/*
 * sapwood.h: a tree of processes that asks every process of a job, and returns one merged answer
 * with the missing processes named.
 *
 * Generated from the Rust sources in bindings/c/src; `docs/c-interface.md` has two complete
 * programs.
 *
 * Results. A function that can fail returns 0 or a sapwood_error_code_t, which is positive, and
 * fills the caller's sapwood_error_t, if there is one, with the code and one line of text.
 * Functions that only read a property return it, and 0, NULL or false for NULL.
 *
 * Handles start as NULL. Functions that open, attach or receive take a pointer to the handle, and
 * leave NULL in it when they fail. Functions that close or free take a pointer to it, too, and set
 * it to NULL; closing NULL does nothing, so that a second close is harmless. A copy of a handle of
 * a network, stream or back-end that was closed gets SAPWOOD_ERROR_USAGE, until 1,024 others have
 * been closed; after that, and copies of other handles that were freed, must not be used: no
 * library can detect that.
 *
 * Memory. Texts, arrays and packets that are lent point into the handle that has lent them, and are
 * freed with it. Arguments are read before a function returns and may be freed then. NULL is
 * refused for required arguments; a pointer that is not NULL must be valid.
 *
 * Threads. Networks, streams and back-ends belong to the thread that made them: any other gets
 * SAPWOOD_ERROR_THREAD, and the call has no effect. Several threads may each have their own.
 * Answers, packets, sketches and communicators are plain memory: any threads may read them, but one
 * must free them when no other reads them any more. The library starts threads only for filters
 * and synchronisation rules: those that are loaded from files, and those that it measures to be
 * slow. It installs no signal handler.
 *
 * Processes. A child that was forked from a process with handles gets SAPWOOD_ERROR_FORKED for
 * networks, streams and back-ends, close included: their connections are the parent's. Answers,
 * packets, sketches and communicators are its own to read and free.
 *
 * Faults. A fault inside the library is SAPWOOD_ERROR_INTERNAL; it never ends the program.
 */

#ifndef SAPWOOD_H
#define SAPWOOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* The version of this header; sapwood_version() gives that of the library. */
#define SAPWOOD_VERSION_MAJOR 0
#define SAPWOOD_VERSION_MINOR 1
#define SAPWOOD_VERSION_PATCH 0

/* What options begin as. */
#define SAPWOOD_NETWORK_OPTIONS_INIT \
    { sizeof(sapwood_network_options_t), NULL, NULL, NULL, NULL, NULL, \
      SAPWOOD_TRANSPORT_AUTOMATIC, SAPWOOD_ENCRYPTION_DEFAULT, 0, 0, 0, \
      SAPWOOD_RECOVERY_ON, 0, NULL, NULL, NULL, NULL, NULL, 0 }
#define SAPWOOD_STREAM_OPTIONS_INIT \
    { sizeof(sapwood_stream_options_t), NULL, NULL, SAPWOOD_WAVE_ALL, 0, SAPWOOD_POLICY_BLOCK, 0, \
      NULL, NULL, NULL, NULL, 0 }

/** Length of the text of an error in bytes, its final NUL included. Longer texts are cut. */
#define SAPWOOD_ERROR_TEXT_BYTES 512

/** How many directives a format string may have. */
#define SAPWOOD_DIRECTIVES_MAX 64

/** The first tag that an application may use; lower ones are the network's. */
#define SAPWOOD_FIRST_TAG 100

/** Stands for any free rank. */
#define SAPWOOD_ANY_RANK 4294967295

/** How many numbers `sapwood_usage` gives. */
#define SAPWOOD_USAGE_COLUMNS 5

/** What went wrong. Functions that can fail give 0 or one of these. */
typedef enum {
    /** Success. */
    SAPWOOD_OK = 0,
    /**
     * The call makes no sense: NULL where something is needed, a bad rank set or option, ranks
     * that are not there, a stream that is closed. Cure: see the text.
     */
    SAPWOOD_ERROR_USAGE = 1,
    /** A topology cannot be read. The text says what and where. */
    SAPWOOD_ERROR_TOPOLOGY = 2,
    /**
     * The network could not be started or joined: a program is missing, a process did not start,
     * the parent does not answer. The text has the failed process's error text. Nothing is left
     * running.
     */
    SAPWOOD_ERROR_START = 3,
    /** The deadline passed. Try again, or go on without. */
    SAPWOOD_ERROR_TIMEOUT = 4,
    /** The network has ended for this process. Close the handle. */
    SAPWOOD_ERROR_ENDED = 5,
    /**
     * All back-ends of the stream are lost: no answer can arrive. The text names them with
     * reasons.
     */
    SAPWOOD_ERROR_NO_MEMBER_LEFT = 6,
    /** The answer has no value. The text names the missing back-ends with reasons. */
    SAPWOOD_ERROR_NO_VALUE = 7,
    /** A filter is not known or does not accept its parameters. */
    SAPWOOD_ERROR_FILTER = 8,
    /** A format string is malformed, or differs from what the packet holds. */
    SAPWOOD_ERROR_FORMAT = 9,
    /** The system or a connection failed this process. */
    SAPWOOD_ERROR_SYSTEM = 10,
    /** A file cannot be read or written, or holds something else. The text names it. */
    SAPWOOD_ERROR_FILE = 11,
    /** The handle belongs to another thread. Nothing was done. */
    SAPWOOD_ERROR_THREAD = 12,
    /** The handle belongs to the process that this one was forked from. Nothing was done. */
    SAPWOOD_ERROR_FORKED = 13,
    /** A fault of this library. Please report the text. */
    SAPWOOD_ERROR_INTERNAL = 14,
    /**
     * This process has no memory for a packet, which is not sent, or is lost. The text says how
     * many bytes it takes. Small ones go on.
     */
    SAPWOOD_ERROR_MEMORY = 15,
    /**
     * The stream's window is full: a receiver has not read earlier packets. Nothing was sent. Try
     * again later.
     */
    SAPWOOD_ERROR_WOULD_WAIT = 16,
} sapwood_error_code_t;

/** What one element of a value is: the low four bits of a directive's code. */
typedef enum {
    /** `%c`: int8_t. */
    SAPWOOD_TYPE_INT8 = 1,
    /** `%uc`: uint8_t. */
    SAPWOOD_TYPE_UINT8 = 2,
    /** `%hd`: int16_t. */
    SAPWOOD_TYPE_INT16 = 3,
    /** `%uhd`: uint16_t. */
    SAPWOOD_TYPE_UINT16 = 4,
    /** `%d`: int32_t. */
    SAPWOOD_TYPE_INT32 = 5,
    /** `%ud`: uint32_t. */
    SAPWOOD_TYPE_UINT32 = 6,
    /** `%ld`: int64_t, whatever the machine's long is. */
    SAPWOOD_TYPE_INT64 = 7,
    /** `%uld`: uint64_t, whatever the machine's long is. */
    SAPWOOD_TYPE_UINT64 = 8,
    /** `%f`: float. */
    SAPWOOD_TYPE_FLOAT = 9,
    /** `%lf`: double. */
    SAPWOOD_TYPE_DOUBLE = 10,
    /** `%s`: a NUL-terminated string. */
    SAPWOOD_TYPE_STRING = 11,
} sapwood_type_t;

/** How many elements a value has: the high four bits of a directive's code. */
typedef enum {
    /** `%d` and its like: one element. */
    SAPWOOD_SHAPE_SCALAR = 0,
    /** `%ad` and its like: a pointer and a count of uint32_t. */
    SAPWOOD_SHAPE_ARRAY = 16,
    /** `%Ad` and its like: a pointer and a count of uint64_t. */
    SAPWOOD_SHAPE_LARGE_ARRAY = 32,
} sapwood_shape_t;

/** What the links of a network are made of. */
typedef enum {
    /** Shared memory within a host, TCP between hosts. */
    SAPWOOD_TRANSPORT_AUTOMATIC = 0,
    /** Unix-domain sockets. */
    SAPWOOD_TRANSPORT_UNIX = 1,
    /** TCP, bound to the loopback interface. */
    SAPWOOD_TRANSPORT_TCP = 2,
    /** Shared memory between processes of one user on one host. */
    SAPWOOD_TRANSPORT_SHM = 3,
} sapwood_transport_t;

/** Whether links are encrypted. Every link proves the network's key in any case. */
typedef enum {
    /** TCP yes, Unix-domain sockets no. */
    SAPWOOD_ENCRYPTION_DEFAULT = 0,
    /** Every link. */
    SAPWOOD_ENCRYPTION_ON = 1,
    /** No link. */
    SAPWOOD_ENCRYPTION_OFF = 2,
} sapwood_encryption_t;

/** The behaviour after the death of a process of the tree. */
typedef enum {
    /** Those below it find a new parent. */
    SAPWOOD_RECOVERY_ON = 0,
    /** The processes below it are lost, too. */
    SAPWOOD_RECOVERY_OFF = 1,
} sapwood_recovery_t;

/** What a process of the tree is. */
typedef enum {
    /** The root. */
    SAPWOOD_ROLE_FRONT_END = 0,
    /** A process between the root and the leaves. */
    SAPWOOD_ROLE_COMMUNICATION = 1,
    /** A leaf. */
    SAPWOOD_ROLE_BACK_END = 2,
} sapwood_role_t;

/** When a wave is complete. */
typedef enum {
    /** When all members have sent or are known to be lost. */
    SAPWOOD_WAVE_ALL = 0,
    /**
     * As SAPWOOD_WAVE_ALL, but no later than `wave_timeout_ms` after the first packet. Each level
     * of the tree waits its share: in one of two levels, the parents of back-ends wait half of it.
     */
    SAPWOOD_WAVE_TIMEOUT = 1,
    /** At once: every packet is a wave of its own. */
    SAPWOOD_WAVE_IMMEDIATE = 2,
} sapwood_wave_t;

/** What happens when a stream's window is full. */
typedef enum {
    /** Senders wait. */
    SAPWOOD_POLICY_BLOCK = 0,
    /** The oldest waiting packet is dropped and counted. */
    SAPWOOD_POLICY_DROP_OLDEST = 1,
} sapwood_policy_t;

/** A change in the network. */
typedef enum {
    /** There is no further event. */
    SAPWOOD_EVENT_NONE = 0,
    /** The tree has started as far as it will; `ranks` are the back-ends that are connected. */
    SAPWOOD_EVENT_READY = 1,
    /** The back-ends `ranks` have joined after the start. */
    SAPWOOD_EVENT_JOINED = 2,
    /** The process `rank` could not be started; `text` holds its own words. */
    SAPWOOD_EVENT_START_FAILED = 3,
    /** The link to `rank` closed: the back-ends `ranks` are lost; `text` says what was observed. */
    SAPWOOD_EVENT_LOST = 4,
    /** A downward filter of `stream` failed here; `text` is its reason. */
    SAPWOOD_EVENT_FILTER_FAILED = 5,
    /** `stream` has opened (at back-ends). */
    SAPWOOD_EVENT_STREAM_OPENED = 6,
    /** `stream` has closed (at back-ends). */
    SAPWOOD_EVENT_STREAM_CLOSED = 7,
    /** The network has ended for this process; `text` says what was observed. */
    SAPWOOD_EVENT_ENDED = 8,
    /** Something that this header does not know yet; `text` describes it. */
    SAPWOOD_EVENT_OTHER = 9,
    /**
     * The communication process `rank` is lost; the back-ends `ranks` below it look for a new
     * parent, and none is lost yet. `text` says what was observed.
     */
    SAPWOOD_EVENT_BROKEN = 10,
    /**
     * `adopter` has adopted the children `orphans` of `rank`, which is lost; the back-ends `ranks`
     * came back with them.
     */
    SAPWOOD_EVENT_REPAIRED = 11,
    /**
     * The process `rank` has seen something that costs no answer and that the user may want to
     * know: `text`.
     */
    SAPWOOD_EVENT_NOTICE = 12,
} sapwood_event_kind_t;

/**
 * Why back-ends are missing from an answer, or a process from the network. A later version may
 * have further ones.
 */
typedef enum {
    /** None of the others; the reason says more. */
    SAPWOOD_CAUSE_OTHER = 0,
    /** It has left the network on purpose. */
    SAPWOOD_CAUSE_LEFT = 1,
    /** Its link has closed, and no process knows how it ended. */
    SAPWOOD_CAUSE_DIED = 2,
    /** It has ended by itself; the detail is its exit status. */
    SAPWOOD_CAUSE_EXITED = 3,
    /** A signal has ended it; the detail is the signal's number. */
    SAPWOOD_CAUSE_KILLED = 4,
    /** It was silent for longer than the network's limit, and its link was torn. */
    SAPWOOD_CAUSE_SILENT = 5,
    /** It has never connected. */
    SAPWOOD_CAUSE_NEVER_STARTED = 6,
    /** It did not answer within the time of the stream's waves. */
    SAPWOOD_CAUSE_LATE = 7,
    /** It is there, and has sent nothing in this wave. */
    SAPWOOD_CAUSE_SKIPPED = 8,
    /** It was given up, and has come back since. */
    SAPWOOD_CAUSE_AWAY = 9,
    /** A filter failed on what it sent, or could not be made. */
    SAPWOOD_CAUSE_FILTER_FAILED = 10,
    /** It has broken the rules of the network, which does not deal with it any more. */
    SAPWOOD_CAUSE_REFUSED = 11,
    /** A process had no memory for its values. */
    SAPWOOD_CAUSE_OUT_OF_MEMORY = 12,
} sapwood_cause_t;

/** Which filter a sketch is of. */
typedef enum {
    /** There is no sketch. */
    SAPWOOD_SKETCH_NONE = 0,
    /** `quantiles`: of numbers, each within a relative error. */
    SAPWOOD_SKETCH_QUANTILES = 1,
    /** `kll`: of numbers, each within an error in rank. */
    SAPWOOD_SKETCH_KLL = 2,
    /** `distinct`: how many different values there are. */
    SAPWOOD_SKETCH_DISTINCT = 3,
    /** `heavy-hitters`: the most frequent items. */
    SAPWOOD_SKETCH_HEAVY_HITTERS = 4,
    /** `top`: the largest numbers, and their ranks. */
    SAPWOOD_SKETCH_TOP = 5,
    /** `histogram`: how many numbers are in each bin. */
    SAPWOOD_SKETCH_HISTOGRAM = 6,
    /** `union`: all different integers and strings. */
    SAPWOOD_SKETCH_UNION = 7,
    /** `prefix-tree`: call stacks as one tree. */
    SAPWOOD_SKETCH_PREFIX_TREE = 8,
} sapwood_sketch_kind_t;

/** The result of one wave. Plain memory: it may be read on any thread, and outlives its network. */
typedef struct sapwood_answer_t sapwood_answer_t;

/** A leaf of the tree. It belongs to the thread that attached it. */
typedef struct sapwood_back_end_t sapwood_back_end_t;

/** A set of back-ends. Plain memory: any thread may read it, and it outlives its network. */
typedef struct sapwood_communicator_t sapwood_communicator_t;

/** A tree of processes, seen from its root. It belongs to the thread that opened it. */
typedef struct sapwood_network_t sapwood_network_t;

/**
 * A packet: values with their format, and what the network knows of them.
 *
 * It is plain memory: it may be read on any thread, outlives its network, and costs nothing but
 * memory until it is freed.
 */
typedef struct sapwood_packet_t sapwood_packet_t;

/** A question whose answer is waited for. It belongs to the thread of its stream. */
typedef struct sapwood_question_t sapwood_question_t;

/** A sketch that was read. Plain memory: any thread may read it, and it outlives the packet. */
typedef struct sapwood_sketch_t sapwood_sketch_t;

/**
 * A logical connection between the front-end and a set of back-ends, with filters in between. It
 * belongs to the thread that opened it.
 */
typedef struct sapwood_stream_t sapwood_stream_t;

/** The shape of a tree, with hosts and ranks. Plain memory: any thread may read it. */
typedef struct sapwood_topology_t sapwood_topology_t;

/**
 * What went wrong, in memory of the caller. Any function takes NULL instead.
 *
 * It need not be initialised. A call that succeeds sets it to code 0 and an empty text.
 */
typedef struct {
    /** A `sapwood_error_code_t`, equal to what the function returned. */
    int code;
    /** One line for people, NUL-terminated UTF-8: what, where, what to do. */
    char text[SAPWOOD_ERROR_TEXT_BYTES];
} sapwood_error_t;

/** One process of a topology. */
typedef struct {
    /** Its rank. */
    uint32_t rank;
    /** Its parent's rank; UINT32_MAX for the root. */
    uint32_t parent;
    /** A sapwood_role_t. */
    int role;
    /** The index that tells it from other processes of its host. */
    uint32_t index;
    /** How many children it has. */
    uint32_t child_count;
    /** Its host, lent until the topology is freed. */
    const char *host;
} sapwood_topology_node_t;

/** First and last rank of a range, both in it. */
typedef struct {
    /** The first rank. */
    uint32_t first;
    /** The last rank. */
    uint32_t last;
} sapwood_rank_range_t;

/**
 * What a network is to be. Begin with SAPWOOD_NETWORK_OPTIONS_INIT; all members after `size` may
 * stay 0 or NULL, except that one of the two topologies or the hosts are needed.
 *
 * All of it is read while the network opens and need not be kept.
 */
typedef struct {
    /** sizeof(sapwood_network_options_t) of the header that the program was compiled with. */
    size_t size;
    /** The shape, such as "16^2" or "4x8". */
    const char *topology;
    /** The text of a topology file in MRNet's format, instead of `topology`. */
    const char *topology_file_text;
    /**
     * The back-ends' program and arguments, ending with NULL. If it is NULL itself, back-ends
     * attach by themselves: see `sapwood_network_write_attach_file`.
     */
    const char *const *back_end_argv;
    /**
     * Variables that are set for the back-ends, each as "NAME=value", ending with NULL; may be
     * NULL.
     */
    const char *const *back_end_environment;
    /**
     * The program that is run for communication processes, `sapwood-node`. NULL: what SAPWOOD_NODE
     * names, or `sapwood-node` beside this program or on the search path.
     */
    const char *node_program;
    /** A sapwood_transport_t. */
    int transport;
    /** A sapwood_encryption_t. */
    int encryption;
    /**
     * How long the tree may take to start, in milliseconds; 0 for 30 seconds, or 60 where other
     * hosts take part.
     */
    int32_t startup_timeout_ms;
    /**
     * Not 0: the network opens even if some processes do not start; they are reported as events.
     */
    int allow_missing;
    /**
     * Not 0: every leaf of the topology is a communication process at which this many back-ends
     * may attach by themselves, as in MRNet's attach mode.
     */
    uint32_t attach_per_leaf;
    /** A sapwood_recovery_t. */
    int recovery;
    /**
     * How long a filter from a file may take for one wave, in milliseconds, before it is given up:
     * its waves then fail with that reason. 0 for 10 seconds, -1 for ever.
     */
    int32_t filter_limit_ms;
    /**
     * Hosts as a nodeset, such as "node[01-16]": one back-end runs on each, and communication
     * processes beside the first back-ends below them. `topology` is then the shape, with as many
     * back-ends, or NULL for a tree in which no process reaches more than 32 hosts. NULL: this
     * machine alone, or the hosts of `topology_file_text`.
     */
    const char *hosts;
    /**
     * How other hosts are reached: "ssh", "slurm", "local" for not at all, or "auto", which is
     * also meant by NULL: as the hosts and the environment demand.
     */
    const char *launcher;
    /**
     * The remote shell and its own arguments, ending with NULL, instead of `ssh` or of the value
     * of SAPWOOD_RSH says; may be NULL.
     */
    const char *const *remote_shell;
    /**
     * The command by which hosts that are reached by a remote shell run what is started there,
     * such as "nice", "-n", "10", ending with NULL; may be NULL.
     */
    const char *const *remote_prefix;
    /**
     * The number of the Slurm allocation in which processes are started; NULL for the one that
     * this process is in.
     */
    const char *slurm_job;
    /**
     * How long a host may take to answer before it is given up, in milliseconds; 0 for 10 seconds.
     */
    int32_t connect_timeout_ms;
} sapwood_network_options_t;

/**
 * One change in a network. Texts are lent until the next event is asked for or the handle is
 * closed, and never NULL.
 */
typedef struct {
    /** A sapwood_event_kind_t. */
    int kind;
    /** The process that it is about, if it is about one. */
    uint32_t rank;
    /** The stream that it is about, if it is about one. */
    uint32_t stream;
    /** The back-ends that it is about, as "0-3,7". */
    const char *ranks;
    /** A description for display. */
    const char *text;
    /** The process that has taken over, if one has. */
    uint32_t adopter;
    /** The processes that it has taken over, as "0-3,7". */
    const char *orphans;
    /** Why `rank` is lost: a sapwood_cause_t. 0 in events that are of no loss. */
    int cause;
    /** The exit status or signal of a cause that has one; else 0. */
    uint32_t cause_detail;
} sapwood_event_t;

/**
 * What a stream is to be. Begin with SAPWOOD_STREAM_OPTIONS_INIT; all members after `size` may
 * stay 0 or NULL.
 */
typedef struct {
    /** sizeof(sapwood_stream_options_t) of the header that the program was compiled with. */
    size_t size;
    /**
     * Filters on the way up, in order, separated by commas, such as "sum". NULL: packets pass as
     * they are. Processes may have different filters: "sum@9;max@11-12;null@*" names the ranks of
     * each, and with `*` the filter of all others.
     */
    const char *up;
    /** Filters on the way down. */
    const char *down;
    /** A sapwood_wave_t. */
    int wave;
    /** The longest wait of SAPWOOD_WAVE_TIMEOUT, in milliseconds. */
    uint32_t wave_timeout_ms;
    /** A sapwood_policy_t. */
    int policy;
    /** How many bytes may be under way per link and direction; 0 for the default. */
    uint32_t window_bytes;
    /**
     * A text that every filter from a file on the way up is given as its one parameter; NULL for
     * none.
     */
    const char *up_text;
    /** The same for the way down. */
    const char *down_text;
    /**
     * A synchronisation rule from a file, which decides besides `wave` when a wave that is not
     * complete is forwarded, such as "native:libmine.so#quorum"; its name in a file that was
     * shipped is given by `sapwood_network_ship`. NULL for none.
     */
    const char *rule;
    /** A text that the rule is given as its one parameter; NULL for none. */
    const char *rule_text;
    /**
     * Not 0: the filters run in back-ends, too, on what each of them sends and receives: in those
     * that `sapwood_back_end_attach_with_filters` has attached. Each packet that a filter emits
     * there is a wave of that back-end.
     */
    int filters_at_back_ends;
} sapwood_stream_options_t;

/** Back-ends that an answer lacks for one reason. All of it is lent until the answer is freed. */
typedef struct {
    /** The ranks, as "0-3,7". */
    const char *ranks;
    /** Why, in one line for people. */
    const char *reason;
    /** The ranks, as sorted ranges. */
    const sapwood_rank_range_t *ranges;
    /** How many ranges. */
    size_t range_count;
    /** Why: a sapwood_cause_t. */
    int cause;
    /** The exit status or signal of a cause that has one; else 0. */
    uint32_t cause_detail;
} sapwood_missing_t;

/** An item or number of a sketch. What it points to is lent until the sketch is freed. */
typedef struct {
    /**
     * A sapwood_type_t that says where the value is: SAPWOOD_TYPE_INT64 in `integer`,
     * SAPWOOD_TYPE_UINT64 in `natural`, SAPWOOD_TYPE_DOUBLE in `number`, SAPWOOD_TYPE_STRING in
     * `text`.
     */
    int kind;
    /** The signed integer, or 0. */
    int64_t integer;
    /** The integer without sign, or 0. */
    uint64_t natural;
    /** The number, or the double nearest to the integer; 0 for a string. */
    double number;
    /** The string with a NUL behind it; NULL for a number. */
    const char *text;
    /** The string's length in bytes, which may hold NULs. */
    size_t text_bytes;
    /** How often it came at least; 1 in a union, which does not count. */
    uint64_t at_least;
    /** How often it came at most; the same as `at_least` in all but heavy hitters. */
    uint64_t at_most;
    /** The back-ends that sent it, as "0-3,7"; empty in all but the sketch of `top`. */
    const char *ranks;
    /** The same as sorted ranges; NULL where there are none. */
    const sapwood_rank_range_t *ranges;
    /** How many ranges. */
    size_t range_count;
} sapwood_sketch_entry_t;

/** A bin of a histogram. */
typedef struct {
    /** The smallest number that it may hold. */
    double low;
    /** What its numbers are below. */
    double high;
    /** How many there are. */
    uint64_t count;
} sapwood_sketch_bin_t;

/** A node of a prefix tree. What it points to is lent until the sketch is freed. */
typedef struct {
    /** How many nodes are above it: 0 for an outermost frame. */
    size_t depth;
    /** The frame, with a NUL behind it. */
    const char *name;
    /** The frame's length in bytes, which may hold NULs. */
    size_t name_bytes;
    /** The back-ends whose stacks pass through it, as "0-3,7". */
    const char *ranks;
    /** The same as sorted ranges. */
    const sapwood_rank_range_t *ranges;
    /** How many ranges. */
    size_t range_count;
    /** How many stacks pass through it. */
    uint64_t stacks;
    /** How many of those end in it, or in what was cut off below it. */
    uint64_t ending;
} sapwood_sketch_node_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The name of an error code in one word, such as "timeout"; "unknown" for other numbers. Static.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: what it gives is the library's, lent as said above.
 */
const char *sapwood_error_name(int code);

/**
 * Takes a format string apart: one code per directive, a `sapwood_type_t` plus a
 * `sapwood_shape_t`.
 *
 * `codes` has room for `capacity` codes; `SAPWOOD_DIRECTIVES_MAX` are always enough. `count` gets
 * how many there are.
 *
 * Errors: USAGE, FORMAT, INTERNAL.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_format_parse(const char *format,
                         uint8_t *codes,
                         size_t capacity,
                         size_t *count,
                         sapwood_error_t *error);

/**
 * Reads a topology: a shape such as "4x8", or the text of a file in MRNet's format; one of the two
 * is NULL. If `attach_per_leaf` is not 0, leaves are communication processes at which this many
 * back-ends may attach.
 *
 * Errors: USAGE, TOPOLOGY, INTERNAL.
 * Threads: any.
 * Memory: the handle is the caller's, to be given back by sapwood_topology_free.
 */
int sapwood_topology_read(sapwood_topology_t **topology,
                          const char *shape,
                          const char *file_text,
                          uint32_t attach_per_leaf,
                          sapwood_error_t *error);

/**
 * How many processes the topology has, back-ends that may attach included; 0 for NULL.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
size_t sapwood_topology_size(const sapwood_topology_t *topology);

/**
 * One process, by its index in breadth-first order, the root first.
 *
 * Errors: USAGE, INTERNAL.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_topology_node(const sapwood_topology_t *topology,
                          size_t place,
                          sapwood_topology_node_t *node,
                          sapwood_error_t *error);

/**
 * The topology as the text of a file in MRNet's format, lent until the topology is freed; NULL for
 * NULL.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: what it gives is the library's, lent as said above.
 */
const char *sapwood_topology_file_text(const sapwood_topology_t *topology);

/**
 * Gives a topology back and sets the handle to NULL.
 *
 * Errors: none.
 * Threads: any.
 * Memory: what the handle has lent is gone.
 */
void sapwood_topology_free(sapwood_topology_t **topology);

/**
 * All back-ends that are connected now.
 *
 * Errors: USAGE, THREAD, FORKED, INTERNAL.
 * Threads: the network's own.
 * Memory: the handle is the caller's, to be given back by sapwood_communicator_free.
 */
int sapwood_communicator_everyone(sapwood_communicator_t **communicator,
                                  const sapwood_network_t *network,
                                  sapwood_error_t *error);

/**
 * The back-ends of `count` ranks, in any order. Whether they are there is seen when a stream
 * opens.
 *
 * Errors: USAGE, INTERNAL.
 * Threads: any.
 * Memory: the handle is the caller's, to be given back by sapwood_communicator_free.
 */
int sapwood_communicator_of_ranks(sapwood_communicator_t **communicator,
                                  const uint32_t *ranks,
                                  size_t count,
                                  sapwood_error_t *error);

/**
 * The back-ends of a rank set that is written as "0-3,7".
 *
 * Errors: USAGE, INTERNAL.
 * Threads: any.
 * Memory: the handle is the caller's, to be given back by sapwood_communicator_free.
 */
int sapwood_communicator_parse(sapwood_communicator_t **communicator,
                               const char *ranks,
                               sapwood_error_t *error);

/**
 * How many back-ends there are; 0 for NULL.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
uint64_t sapwood_communicator_size(const sapwood_communicator_t *communicator);

/**
 * The ranks as sorted ranges, lent until the communicator is freed; `count` gets how many ranges.
 * NULL when there are none.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: what it gives is the library's, lent as said above.
 */
const sapwood_rank_range_t *sapwood_communicator_ranges(const sapwood_communicator_t *communicator,
                                                        size_t *count);

/**
 * Gives a communicator back and sets the handle to NULL. Streams that were opened with it stay
 * open.
 *
 * Errors: none.
 * Threads: any.
 * Memory: what the handle has lent is gone.
 */
void sapwood_communicator_free(sapwood_communicator_t **communicator);

/**
 * The version of the library, such as "0.1.0". Static.
 *
 * Errors: none.
 * Threads: any.
 * Memory: what it gives is the library's, lent as said above.
 */
const char *sapwood_version(void);

/**
 * Starts the tree and waits until all processes have joined. If that fails, no process is left
 * running.
 *
 * Errors: USAGE, TOPOLOGY, START, FILTER, SYSTEM, INTERNAL.
 * Threads: any.
 * Memory: the handle is the caller's, to be given back by sapwood_network_close.
 */
int sapwood_network_open(sapwood_network_t **network,
                         const sapwood_network_options_t *options,
                         sapwood_error_t *error);

/**
 * Ends the tree: packets that were sent are delivered, then every process ends. Sets the handle to
 * NULL; nothing happens if it is NULL already. Streams of the network have to be closed, too,
 * before or after.
 *
 * Errors: USAGE, THREAD, FORKED, SYSTEM, INTERNAL.
 * Threads: the network's own.
 * Memory: what the handle has lent is gone.
 */
int sapwood_network_close(sapwood_network_t **network, sapwood_error_t *error);

/**
 * How many back-ends are connected now; 0 for a handle that may not be used here.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: the network's own.
 * Memory: nothing is kept of what it is given.
 */
uint64_t sapwood_network_size(const sapwood_network_t *network);

/**
 * The attach points: one line "parent-rank address ranks" for each, lent until the network is
 * closed; NULL for a handle that may not be used here.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: the network's own.
 * Memory: what it gives is the library's, lent as said above.
 */
const char *sapwood_network_attach_points(const sapwood_network_t *network);

/**
 * Sends a file of filters, a shared object or WebAssembly made with sapwood_filter.h, to every
 * process of the tree, those that come later included. `file` is a path, or a name to be looked
 * for in the folders of SAPWOOD_FILTER_PATH here; `filter` a filter in it, NULL when it has one
 * only. `*name` is what `up` and `down` of a stream's options take: lent until the network is
 * closed. A file that was shipped before is not sent again.
 *
 * Errors: USAGE, THREAD, FORKED, FILE, FILTER, ENDED, SYSTEM, INTERNAL.
 * Threads: the network's own.
 * Memory: what it gives is the library's, lent as said above.
 */
int sapwood_network_ship(sapwood_network_t *network,
                         const char *file,
                         const char *filter,
                         const char **name,
                         sapwood_error_t *error);

/**
 * Writes what back-ends need to attach: the network's key into `key_path`, a new file of mode
 * 0600, and the places with that file's name into `path`. Remove both when all have come.
 *
 * Errors: USAGE, THREAD, FORKED, FILE, INTERNAL.
 * Threads: the network's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_network_write_attach_file(const sapwood_network_t *network,
                                      const char *path,
                                      const char *key_path,
                                      sapwood_error_t *error);

/**
 * Waits until `count` back-ends are connected. `timeout_ms` must not be negative.
 *
 * Errors: USAGE, THREAD, FORKED, TIMEOUT, ENDED, SYSTEM, INTERNAL.
 * Threads: the network's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_network_wait_for_back_ends(sapwood_network_t *network,
                                       uint64_t count,
                                       int32_t timeout_ms,
                                       sapwood_error_t *error);

/**
 * The next change in the network; its kind is SAPWOOD_EVENT_NONE when there is none.
 *
 * Errors: USAGE, THREAD, FORKED, INTERNAL.
 * Threads: the network's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_network_next_event(sapwood_network_t *network,
                               sapwood_event_t *event,
                               sapwood_error_t *error);

/**
 * Lets the network work until something has happened, or `timeout_ms` are over, which must not be
 * negative. Call it with 0 when the descriptor is readable; receiving does the same.
 *
 * Errors: USAGE, THREAD, FORKED, SYSTEM, INTERNAL.
 * Threads: the network's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_network_turn(sapwood_network_t *network, int32_t timeout_ms, sapwood_error_t *error);

/**
 * Writes the packets sent so far, as far as the system takes them.
 *
 * Errors: USAGE, THREAD, FORKED, SYSTEM, INTERNAL.
 * Threads: the network's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_network_flush(sapwood_network_t *network, sapwood_error_t *error);

/**
 * Has the tree repair itself from now on, or not: SAPWOOD_RECOVERY_ON or SAPWOOD_RECOVERY_OFF. A
 * network that was opened with SAPWOOD_RECOVERY_OFF cannot begin with it.
 *
 * Errors: USAGE, THREAD, FORKED, SYSTEM, INTERNAL.
 * Threads: the network's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_network_switch_recovery(sapwood_network_t *network,
                                    int recovery,
                                    sapwood_error_t *error);

/**
 * A descriptor that is readable when there is something to do, for select, poll or epoll; it stays
 * the network's own. -1 for a handle that may not be used here.
 *
 * Receive until nothing is there before waiting for it: what has been read from the system already
 * does not make it readable again.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: the network's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_network_descriptor(const sapwood_network_t *network);

/**
 * How many milliseconds `sapwood_network_turn` need not be called while the descriptor is not
 * readable; -1 for ever. 0 for a handle that may not be used here.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: the network's own.
 * Memory: nothing is kept of what it is given.
 */
int32_t sapwood_network_idle_ms(const sapwood_network_t *network);

/**
 * The number of a stream on which an answer waits to be received: the first one after the stream
 * numbered `after`, or else the lowest; 0 if there is none, and for a handle that may not be used
 * here.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: the network's own.
 * Memory: nothing is kept of what it is given.
 */
uint32_t sapwood_network_answering(const sapwood_network_t *network, uint32_t after);

/**
 * Makes the calling thread the one that the network and all of its streams belong to.
 *
 * For programs that lend a network from thread to thread: the caller holds a lock around every use
 * of it, or makes sure in another way that no other thread uses it meanwhile.
 *
 * Errors: USAGE, FORKED, INTERNAL.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_network_move_to_this_thread(sapwood_network_t *network, sapwood_error_t *error);

/**
 * Opens a stream to `members`, or to everyone for NULL. `options` may be NULL: no filters, and
 * waves that wait for all.
 *
 * Errors: USAGE, THREAD, FORKED, FILTER, ENDED, INTERNAL.
 * Threads: the network's own.
 * Memory: the handle is the caller's, to be given back by sapwood_stream_close.
 */
int sapwood_stream_open(sapwood_stream_t **stream,
                        sapwood_network_t *network,
                        const sapwood_communicator_t *members,
                        const sapwood_stream_options_t *options,
                        sapwood_error_t *error);

/**
 * Closes the stream everywhere; answers that have not been received are lost. Sets the handle to
 * NULL; nothing happens if it is NULL already.
 *
 * Errors: USAGE, THREAD, FORKED, SYSTEM, INTERNAL.
 * Threads: the stream's own.
 * Memory: what the handle has lent is gone.
 */
int sapwood_stream_close(sapwood_stream_t **stream, sapwood_error_t *error);

/**
 * The stream's number; 0 for a handle that may not be used here.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: the stream's own.
 * Memory: nothing is kept of what it is given.
 */
uint32_t sapwood_stream_id(const sapwood_stream_t *stream);

/**
 * How many packets were dropped at the front-end on this stream.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: the stream's own.
 * Memory: nothing is kept of what it is given.
 */
uint64_t sapwood_stream_dropped(const sapwood_stream_t *stream);

/**
 * As `sapwood_stream_broadcast`, with `count` pointers to the values: for a scalar one to it, for
 * `%s` the string itself, for an array one to its first element and one to its count.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, NO_MEMBER_LEFT, ENDED, SYSTEM, INTERNAL.
 * Threads: the stream's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_stream_broadcast_values(sapwood_stream_t *stream,
                                    int32_t tag,
                                    const char *format,
                                    const void *const *values,
                                    size_t count,
                                    sapwood_error_t *error);

/**
 * As `sapwood_stream_send_to`, with pointers as `sapwood_stream_broadcast_values` takes them.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, NO_MEMBER_LEFT, ENDED, SYSTEM, INTERNAL.
 * Threads: the stream's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_stream_send_to_values(sapwood_stream_t *stream,
                                  uint32_t rank,
                                  int32_t tag,
                                  const char *format,
                                  const void *const *values,
                                  size_t count,
                                  sapwood_error_t *error);

/**
 * Sends values down to the back-ends in `members`, or to all members of the stream where that is
 * NULL; an empty communicator sends to no back-end. Pointers as `sapwood_stream_broadcast_values`
 * takes them.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, NO_MEMBER_LEFT, ENDED, SYSTEM, INTERNAL.
 * Threads: the stream's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_stream_send_to_some_values(sapwood_stream_t *stream,
                                       const sapwood_communicator_t *members,
                                       int32_t tag,
                                       const char *format,
                                       const void *const *values,
                                       size_t count,
                                       sapwood_error_t *error);

/**
 * As `sapwood_stream_try_broadcast`, with pointers as `sapwood_stream_broadcast_values` takes
 * them.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, WOULD_WAIT, NO_MEMBER_LEFT, ENDED, SYSTEM, INTERNAL.
 * Threads: the stream's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_stream_try_broadcast_values(sapwood_stream_t *stream,
                                        int32_t tag,
                                        const char *format,
                                        const void *const *values,
                                        size_t count,
                                        sapwood_error_t *error);

/**
 * As `sapwood_stream_send_to_some_values`, if that need not wait: gives SAPWOOD_ERROR_WOULD_WAIT
 * when the window is full on the way to one of the back-ends, so that nothing was sent.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, WOULD_WAIT, NO_MEMBER_LEFT, ENDED, SYSTEM, INTERNAL.
 * Threads: the stream's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_stream_try_send_to_some_values(sapwood_stream_t *stream,
                                           const sapwood_communicator_t *members,
                                           int32_t tag,
                                           const char *format,
                                           const void *const *values,
                                           size_t count,
                                           sapwood_error_t *error);

/**
 * As `sapwood_stream_ask`, with pointers as `sapwood_stream_broadcast_values` takes them.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, TIMEOUT, NO_MEMBER_LEFT, ENDED, SYSTEM, INTERNAL.
 * Threads: the stream's own.
 * Memory: the handle is the caller's, to be given back by sapwood_answer_free.
 */
int sapwood_stream_ask_values(sapwood_stream_t *stream,
                              sapwood_answer_t **answer,
                              int32_t timeout_ms,
                              int32_t tag,
                              const char *format,
                              const void *const *values,
                              size_t count,
                              sapwood_error_t *error);

/**
 * As `sapwood_stream_ask_async`, with pointers as `sapwood_stream_broadcast_values` takes them.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, WOULD_WAIT, NO_MEMBER_LEFT, ENDED, SYSTEM, INTERNAL.
 * Threads: the stream's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_stream_ask_async_values(sapwood_stream_t *stream,
                                    sapwood_question_t **question,
                                    int32_t tag,
                                    const char *format,
                                    const void *const *values,
                                    size_t count,
                                    sapwood_error_t *error);

/**
 * The question's number, which its answer has as well (`sapwood_answer_question`); 0 for a handle
 * that may not be used here.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
uint64_t sapwood_question_number(const sapwood_question_t *question);

/**
 * The answer to a question; waits for it at most `timeout_ms`, or for ever if that is -1, and can
 * be called again after that time. Once it was given there is no other. Free the answer with
 * `sapwood_answer_free`.
 *
 * Gives what `sapwood_stream_ask` does.
 *
 * Errors: USAGE, TIMEOUT, NO_MEMBER_LEFT, ENDED, SYSTEM, INTERNAL.
 * Threads: any.
 * Memory: the handle is the caller's, to be given back by sapwood_answer_free.
 */
int sapwood_question_wait(sapwood_question_t *question,
                          sapwood_answer_t **answer,
                          int32_t timeout_ms,
                          sapwood_error_t *error);

/**
 * The answer to a question, if it is there already; else gives 0 and leaves NULL in `answer`.
 *
 * Errors: USAGE, NO_MEMBER_LEFT, ENDED, SYSTEM, INTERNAL.
 * Threads: any.
 * Memory: the handle is the caller's, to be given back by sapwood_answer_free.
 */
int sapwood_question_try_wait(sapwood_question_t *question,
                              sapwood_answer_t **answer,
                              sapwood_error_t *error);

/**
 * Waits for the answer no more: what comes for the question is discarded. Sets the handle to NULL;
 * nothing happens if it is NULL already.
 *
 * Errors: USAGE, INTERNAL.
 * Threads: any.
 * Memory: what the handle has lent is gone.
 */
int sapwood_question_close(sapwood_question_t **question, sapwood_error_t *error);

/**
 * How many answers were discarded because their question was not waited for any more; 0 for a
 * handle that may not be used here.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: the stream's own.
 * Memory: nothing is kept of what it is given.
 */
uint64_t sapwood_stream_discarded(const sapwood_stream_t *stream);

/**
 * The number of answers that wait to be received; 0 for a handle that may not be used here.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: the stream's own.
 * Memory: nothing is kept of what it is given.
 */
uint64_t sapwood_stream_waiting(const sapwood_stream_t *stream);

/**
 * The next answer that is none to `sapwood_stream_ask`; waits for it at most `timeout_ms`, or for
 * ever if that is -1. What was sent before is written first. Free the answer with
 * `sapwood_answer_free`.
 *
 * Gives SAPWOOD_ERROR_TIMEOUT, SAPWOOD_ERROR_NO_MEMBER_LEFT when all members are lost, or
 * SAPWOOD_ERROR_ENDED.
 *
 * Errors: USAGE, THREAD, FORKED, TIMEOUT, NO_MEMBER_LEFT, ENDED, SYSTEM, INTERNAL.
 * Threads: the stream's own.
 * Memory: the handle is the caller's, to be given back by sapwood_answer_free.
 */
int sapwood_stream_recv(sapwood_stream_t *stream,
                        sapwood_answer_t **answer,
                        int32_t timeout_ms,
                        sapwood_error_t *error);

/**
 * The next answer, if it is there already; else gives 0 and leaves NULL in `answer`.
 *
 * Errors: USAGE, THREAD, FORKED, NO_MEMBER_LEFT, ENDED, SYSTEM, INTERNAL.
 * Threads: the stream's own.
 * Memory: the handle is the caller's, to be given back by sapwood_answer_free.
 */
int sapwood_stream_try_recv(sapwood_stream_t *stream,
                            sapwood_answer_t **answer,
                            sapwood_error_t *error);

/**
 * The name of a `sapwood_cause_t` in one word, such as "killed"; "other" for other numbers.
 * Static.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: what it gives is the library's, lent as said above.
 */
const char *sapwood_cause_name(int cause);

/**
 * The value: a packet that is lent until the answer is freed.
 *
 * Gives SAPWOOD_ERROR_NO_VALUE, with the missing back-ends and reasons, when a filter failed or no
 * back-end contributed.
 *
 * Errors: USAGE, NO_VALUE, INTERNAL.
 * Threads: any.
 * Memory: what it gives is the library's, lent as said above.
 */
int sapwood_answer_value(const sapwood_answer_t *answer,
                         const sapwood_packet_t **packet,
                         sapwood_error_t *error);

/**
 * The wave: a number that rises in each stream, from 0. Answers to questions
 * (`sapwood_answer_question`), and what is sent unasked behind one, have numbers from 2^62 on. 0
 * for NULL.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
uint64_t sapwood_answer_wave(const sapwood_answer_t *answer);

/**
 * Whether back-ends have answered a packet of the front-end's (`sapwood_back_end_reply`); `number`
 * gets that packet's number in its stream, counted from 0. False for what they have sent unasked,
 * and for NULL.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
bool sapwood_answer_question(const sapwood_answer_t *answer, uint64_t *number);

/**
 * The number of the stream; 0 for NULL.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
uint32_t sapwood_answer_stream(const sapwood_answer_t *answer);

/**
 * Whether there is a value and every member of the stream is in it; false for NULL.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
bool sapwood_answer_is_complete(const sapwood_answer_t *answer);

/**
 * Whether the wave had been answered before this part of it came; false for NULL.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
bool sapwood_answer_is_late(const sapwood_answer_t *answer);

/**
 * How many back-ends the value stands for; 0 for NULL.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
uint64_t sapwood_answer_contributor_count(const sapwood_answer_t *answer);

/**
 * The back-ends that the value stands for, as sorted ranges, lent until the answer is freed;
 * `count` gets how many ranges. NULL when there are none.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: what it gives is the library's, lent as said above.
 */
const sapwood_rank_range_t *sapwood_answer_contributors(const sapwood_answer_t *answer,
                                                        size_t *count);

/**
 * The back-ends that the value lacks, grouped by reason, lent until the answer is freed; `count`
 * gets how many groups. NULL when there are none.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: what it gives is the library's, lent as said above.
 */
const sapwood_missing_t *sapwood_answer_missing(const sapwood_answer_t *answer, size_t *count);

/**
 * Gives an answer back, with its packet, and sets the handle to NULL.
 *
 * Errors: none.
 * Threads: any.
 * Memory: what the handle has lent is gone.
 */
void sapwood_answer_free(sapwood_answer_t **answer);

/**
 * Gives a packet back and sets the handle to NULL; nothing happens if it or `packet` is NULL. What
 * it has lent is gone with it. Packets that an answer has lent are freed with the answer.
 *
 * Errors: none.
 * Threads: any.
 * Memory: what the handle has lent is gone.
 */
void sapwood_packet_free(sapwood_packet_t **packet);

/**
 * The packet's tag; 0 for NULL.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
int32_t sapwood_packet_tag(const sapwood_packet_t *packet);

/**
 * The stream that the packet came on, for the answer to be sent on; 0 for NULL.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
uint32_t sapwood_packet_stream(const sapwood_packet_t *packet);

/**
 * The rank that made the packet: its sender, or the process whose filter did; UINT32_MAX for NULL.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
uint32_t sapwood_packet_origin(const sapwood_packet_t *packet);

/**
 * The packet's format string, such as "%d %alf"; lent until the packet is freed; NULL for NULL.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: what it gives is the library's, lent as said above.
 */
const char *sapwood_packet_format(const sapwood_packet_t *packet);

/**
 * Reads all values of a packet into places given by pointers; `count` says how many pointers.
 *
 * As `sapwood_packet_read`, for callers without variable arguments.
 *
 * Errors: USAGE, FORMAT, INTERNAL.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_packet_read_values(const sapwood_packet_t *packet,
                               const char *format,
                               void *const *places,
                               size_t count,
                               sapwood_error_t *error);

/**
 * One `%s` value as bytes with their length, for strings that hold NULs; `index` counts values
 * from 0. The bytes are lent until the packet is freed, and no NUL need follow them.
 *
 * Errors: USAGE, FORMAT, INTERNAL.
 * Threads: any.
 * Memory: what it gives is the library's, lent as said above.
 */
int sapwood_packet_bytes(const sapwood_packet_t *packet,
                         size_t index,
                         const char **bytes,
                         size_t *length,
                         sapwood_error_t *error);

/**
 * Reads the sketch in a packet, of any kind: the answer of a stream whose last upward filter is a
 * sketch's, or what a filter of one's own was given. It does not need the packet any more.
 *
 * Errors: USAGE, FORMAT, INTERNAL.
 * Threads: any.
 * Memory: the handle is the caller's, to be given back by sapwood_sketch_free.
 */
int sapwood_sketch_read(sapwood_sketch_t **sketch,
                        const sapwood_packet_t *packet,
                        sapwood_error_t *error);

/**
 * Gives a sketch back and sets the handle to NULL; nothing happens if it or `sketch` is NULL.
 *
 * Errors: none.
 * Threads: any.
 * Memory: what the handle has lent is gone.
 */
void sapwood_sketch_free(sapwood_sketch_t **sketch);

/**
 * Which filter it is of: a sapwood_sketch_kind_t; SAPWOOD_SKETCH_NONE for NULL.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_sketch_kind(const sapwood_sketch_t *sketch);

/**
 * How many numbers, items or stacks were added, each as often as it came; the items of a union,
 * which are all different, and of `top` the numbers that were kept. 0 for `distinct`, which does
 * not know, and for NULL.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
uint64_t sapwood_sketch_count(const sapwood_sketch_t *sketch);

/**
 * How many numbers were left out because they are NaN, or infinite where that is no number to the
 * sketch; 0 for kinds that leave nothing out, and for NULL.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
uint64_t sapwood_sketch_left_out(const sapwood_sketch_t *sketch);

/**
 * Whether nothing was cut off for the bound of a union or a prefix tree; true for other kinds,
 * false for NULL.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
bool sapwood_sketch_is_complete(const sapwood_sketch_t *sketch);

/**
 * The items of `heavy-hitters` (the most frequent first), the numbers of `top` (the largest first)
 * or the items of `union` (integers by value, then strings by their bytes), lent until the sketch
 * is freed; NULL and 0 when there are none.
 *
 * Errors: USAGE, INTERNAL.
 * Threads: any.
 * Memory: what it gives is the library's, lent as said above.
 */
int sapwood_sketch_entries(const sapwood_sketch_t *sketch,
                           const sapwood_sketch_entry_t **entries,
                           size_t *count,
                           sapwood_error_t *error);

/**
 * The bins of `histogram` from low to high, lent until the sketch is freed; of self-chosen ones,
 * from the first to the last that holds a number. NULL and 0 when there are none.
 *
 * Errors: USAGE, INTERNAL.
 * Threads: any.
 * Memory: what it gives is the library's, lent as said above.
 */
int sapwood_sketch_bins(const sapwood_sketch_t *sketch,
                        const sapwood_sketch_bin_t **bins,
                        size_t *count,
                        sapwood_error_t *error);

/**
 * How many numbers are below and above all bins of `histogram`.
 *
 * Errors: USAGE, INTERNAL.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_sketch_outside(const sapwood_sketch_t *sketch,
                           uint64_t *under,
                           uint64_t *over,
                           sapwood_error_t *error);

/**
 * The nodes of `prefix-tree`, each before those below it, those of one parent sorted by name, lent
 * until the sketch is freed; NULL and 0 when there are none.
 *
 * Errors: USAGE, INTERNAL.
 * Threads: any.
 * Memory: what it gives is the library's, lent as said above.
 */
int sapwood_sketch_nodes(const sapwood_sketch_t *sketch,
                         const sapwood_sketch_node_t **nodes,
                         size_t *count,
                         sapwood_error_t *error);

/**
 * A prefix tree for people: a line for each node, indented by its depth, with the ranks in it;
 * lent until the sketch is freed. NULL for other kinds and for NULL.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: any.
 * Memory: what it gives is the library's, lent as said above.
 */
const char *sapwood_sketch_text(const sapwood_sketch_t *sketch);

/**
 * The number of which a share (0 to 1) of all numbers is smaller, of `quantiles` and `kll`; 0.99
 * gives what 99 % stay below. How far it may be from the truth say `sapwood_sketch_relative_error`
 * and `sapwood_sketch_rank_error`. SAPWOOD_ERROR_NO_VALUE when there are no numbers.
 *
 * Errors: USAGE, NO_VALUE, INTERNAL.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_sketch_quantile(const sapwood_sketch_t *sketch,
                            double share,
                            double *number,
                            sapwood_error_t *error);

/**
 * The smallest and the largest number, exactly, of `quantiles` and `kll`. SAPWOOD_ERROR_NO_VALUE
 * when there are no numbers.
 *
 * Errors: USAGE, NO_VALUE, INTERNAL.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_sketch_range(const sapwood_sketch_t *sketch,
                         double *smallest,
                         double *largest,
                         sapwood_error_t *error);

/**
 * The bound on the relative error of every quantile, of `quantiles`: 0.01 unless the stream asked
 * for another, or the numbers spanned too many magnitudes for it.
 *
 * Errors: USAGE, INTERNAL.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_sketch_relative_error(const sapwood_sketch_t *sketch,
                                  double *share,
                                  sapwood_error_t *error);

/**
 * By how many positions the rank of a quantile of `kll` may be wrong: by more only with this
 * probability (0 to 1).
 *
 * Errors: USAGE, INTERNAL.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_sketch_rank_error(const sapwood_sketch_t *sketch,
                              double chance,
                              double *places,
                              sapwood_error_t *error);

/**
 * How many numbers are at most this one, of `kll`, within `sapwood_sketch_rank_error`.
 *
 * Errors: USAGE, INTERNAL.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_sketch_rank(const sapwood_sketch_t *sketch,
                        double number,
                        uint64_t *rank,
                        sapwood_error_t *error);

/**
 * How many different values there are, about, and the standard deviation of that as a share of the
 * truth, which is 0 while the count is exact; of `distinct`.
 *
 * Errors: USAGE, INTERNAL.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_sketch_distinct(const sapwood_sketch_t *sketch,
                            double *estimate,
                            double *standard_error,
                            sapwood_error_t *error);

/**
 * Joins the network that has started this program, as its environment says.
 *
 * Errors: USAGE, START, ENDED, TIMEOUT, SYSTEM, INTERNAL.
 * Threads: any.
 * Memory: the handle is the caller's, to be given back by sapwood_back_end_close.
 */
int sapwood_back_end_attach(sapwood_back_end_t **back_end, sapwood_error_t *error);

/**
 * Joins a network by the file that `sapwood_network_write_attach_file` wrote, under a rank or
 * under SAPWOOD_ANY_RANK.
 *
 * Errors: USAGE, FILE, START, ENDED, TIMEOUT, SYSTEM, INTERNAL.
 * Threads: any.
 * Memory: the handle is the caller's, to be given back by sapwood_back_end_close.
 */
int sapwood_back_end_attach_by_file(sapwood_back_end_t **back_end,
                                    const char *path,
                                    uint32_t rank,
                                    sapwood_error_t *error);

/**
 * Joins as the two above do, by a file or with NULL in the place of its path as the environment
 * says (`rank` is then not looked at), and runs the filters of streams that ask for them in their
 * back-ends: see `filters_at_back_ends` of sapwood_stream_options_t. They run in the calls of this
 * back-end's thread, without any limit of time.
 *
 * Errors: USAGE, FILE, START, ENDED, TIMEOUT, SYSTEM, INTERNAL.
 * Threads: any.
 * Memory: the handle is the caller's, to be given back by sapwood_back_end_close.
 */
int sapwood_back_end_attach_with_filters(sapwood_back_end_t **back_end,
                                         const char *path,
                                         uint32_t rank,
                                         sapwood_error_t *error);

/**
 * Leaves the network; what was sent is written first. Sets the handle to NULL; nothing happens if
 * it is NULL already.
 *
 * Errors: USAGE, THREAD, FORKED, SYSTEM, INTERNAL.
 * Threads: the back-end's own.
 * Memory: what the handle has lent is gone.
 */
int sapwood_back_end_close(sapwood_back_end_t **back_end, sapwood_error_t *error);

/**
 * This back-end's rank; UINT32_MAX for a handle that may not be used here.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: the back-end's own.
 * Memory: nothing is kept of what it is given.
 */
uint32_t sapwood_back_end_rank(const sapwood_back_end_t *back_end);

/**
 * The next packet on any stream; waits for it at most `timeout_ms`, or for ever if that is -1.
 * Packets sent before are written first. Free the packet with `sapwood_packet_free`.
 *
 * Gives SAPWOOD_ERROR_TIMEOUT, or SAPWOOD_ERROR_ENDED when the network ends, as it does for every
 * back-end in time.
 *
 * Errors: USAGE, THREAD, FORKED, TIMEOUT, ENDED, SYSTEM, INTERNAL.
 * Threads: the back-end's own.
 * Memory: the handle is the caller's, to be given back by sapwood_packet_free.
 */
int sapwood_back_end_recv(sapwood_back_end_t *back_end,
                          sapwood_packet_t **packet,
                          int32_t timeout_ms,
                          sapwood_error_t *error);

/**
 * The next packet, if it is there already; else gives 0 and leaves NULL in `packet`.
 *
 * Errors: USAGE, THREAD, FORKED, ENDED, SYSTEM, INTERNAL.
 * Threads: the back-end's own.
 * Memory: the handle is the caller's, to be given back by sapwood_packet_free.
 */
int sapwood_back_end_try_recv(sapwood_back_end_t *back_end,
                              sapwood_packet_t **packet,
                              sapwood_error_t *error);

/**
 * As `sapwood_back_end_send`, with pointers as `sapwood_stream_broadcast_values` takes them.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, ENDED, SYSTEM, INTERNAL.
 * Threads: the back-end's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_back_end_send_values(sapwood_back_end_t *back_end,
                                 uint32_t stream,
                                 int32_t tag,
                                 const char *format,
                                 const void *const *values,
                                 size_t count,
                                 sapwood_error_t *error);

/**
 * As `sapwood_back_end_try_send`, with pointers as `sapwood_stream_broadcast_values` takes them.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, WOULD_WAIT, ENDED, SYSTEM, INTERNAL.
 * Threads: the back-end's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_back_end_try_send_values(sapwood_back_end_t *back_end,
                                     uint32_t stream,
                                     int32_t tag,
                                     const char *format,
                                     const void *const *values,
                                     size_t count,
                                     sapwood_error_t *error);

/**
 * As `sapwood_back_end_reply`, with pointers as `sapwood_stream_broadcast_values` takes them.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, ENDED, SYSTEM, INTERNAL.
 * Threads: the back-end's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_back_end_reply_values(sapwood_back_end_t *back_end,
                                  const sapwood_packet_t *packet,
                                  bool *is_open,
                                  const char *format,
                                  const void *const *values,
                                  size_t count,
                                  sapwood_error_t *error);

/**
 * As `sapwood_back_end_reply_values`, if that need not wait: gives SAPWOOD_ERROR_WOULD_WAIT when
 * the window is full, so that nothing was sent.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, WOULD_WAIT, ENDED, SYSTEM, INTERNAL.
 * Threads: the back-end's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_back_end_try_reply_values(sapwood_back_end_t *back_end,
                                      const sapwood_packet_t *packet,
                                      bool *is_open,
                                      const char *format,
                                      const void *const *values,
                                      size_t count,
                                      sapwood_error_t *error);

/**
 * As `sapwood_back_end_send_in_wave`, with pointers as `sapwood_stream_broadcast_values` takes
 * them.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, ENDED, SYSTEM, INTERNAL.
 * Threads: the back-end's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_back_end_send_in_wave_values(sapwood_back_end_t *back_end,
                                         uint32_t stream,
                                         uint64_t wave,
                                         int32_t tag,
                                         const char *format,
                                         const void *const *values,
                                         size_t count,
                                         sapwood_error_t *error);

/**
 * Writes the packets sent so far, as far as the system takes them.
 *
 * Errors: USAGE, THREAD, FORKED, SYSTEM, INTERNAL.
 * Threads: the back-end's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_back_end_flush(sapwood_back_end_t *back_end, sapwood_error_t *error);

/**
 * Waits until a stream is open here, for a back-end that speaks first; `stream` gets its number.
 * `timeout_ms` must not be negative.
 *
 * Errors: USAGE, THREAD, FORKED, TIMEOUT, ENDED, SYSTEM, INTERNAL.
 * Threads: the back-end's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_back_end_wait_for_stream(sapwood_back_end_t *back_end,
                                     uint32_t *stream,
                                     int32_t timeout_ms,
                                     sapwood_error_t *error);

/**
 * The next change in the network; its kind is SAPWOOD_EVENT_NONE when there is none.
 *
 * Errors: USAGE, THREAD, FORKED, INTERNAL.
 * Threads: the back-end's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_back_end_next_event(sapwood_back_end_t *back_end,
                                sapwood_event_t *event,
                                sapwood_error_t *error);

/**
 * Lets the network work until something has happened, or `timeout_ms` are over, which must not be
 * negative.
 *
 * Errors: USAGE, THREAD, FORKED, SYSTEM, INTERNAL.
 * Threads: the back-end's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_back_end_turn(sapwood_back_end_t *back_end, int32_t timeout_ms, sapwood_error_t *error);

/**
 * Whether the network has ended for this process; true for a handle that may not be used here.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: the back-end's own.
 * Memory: nothing is kept of what it is given.
 */
bool sapwood_back_end_has_ended(const sapwood_back_end_t *back_end);

/**
 * A descriptor that is readable when there is work, for select, poll or epoll; it stays the
 * back-end's own. -1 for a handle that may not be used here.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: the back-end's own.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_back_end_descriptor(const sapwood_back_end_t *back_end);

/**
 * The number of packets that wait to be received; 0 for a handle that may not be used here.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: the back-end's own.
 * Memory: nothing is kept of what it is given.
 */
uint64_t sapwood_back_end_waiting(const sapwood_back_end_t *back_end);

/**
 * How many milliseconds `sapwood_back_end_turn` need not be called while the descriptor is not
 * readable; -1 for ever. 0 for a handle that may not be used here.
 *
 * Errors: none; what it gives says whether there was something to give.
 * Threads: the back-end's own.
 * Memory: nothing is kept of what it is given.
 */
int32_t sapwood_back_end_idle_ms(const sapwood_back_end_t *back_end);

/**
 * Makes the calling thread the one that the back-end belongs to; as
 * `sapwood_network_move_to_this_thread`.
 *
 * Errors: USAGE, FORKED, INTERNAL.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_back_end_move_to_this_thread(sapwood_back_end_t *back_end, sapwood_error_t *error);

/**
 * Runs this process as a communication process until its network ends, as its environment says.
 *
 * A program that calls this when its first argument is "node" can be the `node_program` of a
 * network; it is then all that has to be installed beside the libraries.
 *
 * Errors: USAGE, START, SYSTEM, INTERNAL.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_serve(sapwood_error_t *error);

/**
 * What this process uses, as the filter `usage` tells of communication processes: seconds of
 * processor time in the program, and in the kernel for it; seconds since the process began; KiB of
 * address space, and of memory.
 *
 * `columns` has room for SAPWOOD_USAGE_COLUMNS numbers; they are 0 where the system does not say.
 *
 * Errors: USAGE, INTERNAL.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
int sapwood_usage(double *columns, sapwood_error_t *error);

/**
 * Sends values down to all members. Waits while the stream's window is full. What has been
 * sent leaves with `sapwood_network_flush` or with the next receive.
 *
 * The values follow the format string as in printf: "%d %lf %s" takes an int32_t, a double and
 * a string. An array takes two arguments, a pointer and a count: uint32_t for "%ad" and its
 * like, uint64_t for "%Ad" and its like. Arguments must have exactly these types.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, NO_MEMBER_LEFT, ENDED, SYSTEM, INTERNAL.
 * Threads: the stream's own.
 * Memory: nothing is kept of what it is given.
 */
extern int sapwood_stream_broadcast(sapwood_stream_t *stream,
                                    int32_t tag,
                                    sapwood_error_t *error,
                                    const char *format,
                                    ...);

/**
 * Sends values down to one member; as `sapwood_stream_broadcast`.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, NO_MEMBER_LEFT, ENDED, SYSTEM, INTERNAL.
 * Threads: the stream's own.
 * Memory: nothing is kept of what it is given.
 */
extern int sapwood_stream_send_to(sapwood_stream_t *stream,
                                  uint32_t rank,
                                  int32_t tag,
                                  sapwood_error_t *error,
                                  const char *format,
                                  ...);

/**
 * Sends values down to all members, if that need not wait: gives SAPWOOD_ERROR_WOULD_WAIT when
 * the stream's window is full, so that nothing was sent. Values as in
 * `sapwood_stream_broadcast`.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, WOULD_WAIT, NO_MEMBER_LEFT, ENDED, SYSTEM, INTERNAL.
 * Threads: the stream's own.
 * Memory: nothing is kept of what it is given.
 */
extern int sapwood_stream_try_broadcast(sapwood_stream_t *stream,
                                        int32_t tag,
                                        sapwood_error_t *error,
                                        const char *format,
                                        ...);

/**
 * Asks all members, and waits for the answer to this question at most `timeout_ms`, the wait
 * for room included, or for ever if that is -1. Values as in `sapwood_stream_broadcast`; free
 * the answer with `sapwood_answer_free`. Back-ends answer with `sapwood_back_end_reply`.
 *
 * The answer is that of this question and of no other. What comes for a question that is not
 * waited for any more (its time was over, or the answer is a late part) is discarded and
 * counted: `sapwood_stream_discarded`. What back-ends send unasked, or in reply to
 * `sapwood_stream_broadcast`, stays for `sapwood_stream_recv`, and `sapwood_answer_question`
 * says what it answers. Of several packets that the stream's filters make of one wave, the
 * first is the answer.
 *
 * Gives SAPWOOD_ERROR_USAGE on a stream without one answer for all members: one that does not
 * wait for them, or that has several and no filter; and when answers that have not been
 * received fill the stream's window. Else what `sapwood_stream_recv` does.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, TIMEOUT, NO_MEMBER_LEFT, ENDED, SYSTEM, INTERNAL.
 * Threads: the stream's own.
 * Memory: the handle is the caller's, to be given back by sapwood_answer_free.
 */
extern int sapwood_stream_ask(sapwood_stream_t *stream,
                              sapwood_answer_t **answer,
                              int32_t timeout_ms,
                              int32_t tag,
                              sapwood_error_t *error,
                              const char *format,
                              ...);

/**
 * Asks all members without waiting: `question` gets a handle that the answer is taken from,
 * while other questions of the stream may be under way. Give it back with
 * `sapwood_question_close`. Values as in `sapwood_stream_broadcast`.
 *
 * Gives SAPWOOD_ERROR_WOULD_WAIT when the stream's window is full, so that nothing was sent.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, WOULD_WAIT, NO_MEMBER_LEFT, ENDED, SYSTEM, INTERNAL.
 * Threads: the stream's own.
 * Memory: nothing is kept of what it is given.
 */
extern int sapwood_stream_ask_async(sapwood_stream_t *stream,
                                    sapwood_question_t **question,
                                    int32_t tag,
                                    sapwood_error_t *error,
                                    const char *format,
                                    ...);

/**
 * Answers a packet of the front-end's: sends values up on its stream with its tag, as the
 * answer to this packet and to no other, which is how `sapwood_stream_ask` knows its answer.
 * Each packet is answered once, in the order of their arrival; one that is passed over gets no
 * answer of this back-end. Values as in `sapwood_stream_broadcast`; the answer leaves as
 * `sapwood_back_end_send` says. Waits while the window is full.
 *
 * `is_open` may be NULL; it gets whether the stream is still open: the front-end that has
 * closed it wants no answer. Gives SAPWOOD_ERROR_USAGE when the packet or a later one was
 * answered, or when a filter and not the front-end has made it.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, ENDED, SYSTEM, INTERNAL.
 * Threads: the back-end's own.
 * Memory: nothing is kept of what it is given.
 */
extern int sapwood_back_end_reply(sapwood_back_end_t *back_end,
                                  const sapwood_packet_t *packet,
                                  bool *is_open,
                                  sapwood_error_t *error,
                                  const char *format,
                                  ...);

/**
 * Sends values up as `sapwood_back_end_send` does, if that need not wait: gives
 * SAPWOOD_ERROR_WOULD_WAIT when the window is full, so that nothing was sent.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, WOULD_WAIT, ENDED, SYSTEM, INTERNAL.
 * Threads: the back-end's own.
 * Memory: nothing is kept of what it is given.
 */
extern int sapwood_back_end_try_send(sapwood_back_end_t *back_end,
                                     uint32_t stream,
                                     int32_t tag,
                                     sapwood_error_t *error,
                                     const char *format,
                                     ...);

/**
 * Sends values up on a stream, in its next wave: unasked, as the answer to no packet in
 * particular (`sapwood_back_end_reply` answers one). Values as in `sapwood_stream_broadcast`.
 * Packets are written together: the last ones leave with `sapwood_back_end_flush` or with the
 * next receive. Waits while the window is full.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, ENDED, SYSTEM, INTERNAL.
 * Threads: the back-end's own.
 * Memory: nothing is kept of what it is given.
 */
extern int sapwood_back_end_send(sapwood_back_end_t *back_end,
                                 uint32_t stream,
                                 int32_t tag,
                                 sapwood_error_t *error,
                                 const char *format,
                                 ...);

/**
 * Sends values in a wave of that number; waves that are left out are missed by this back-end.
 *
 * Errors: USAGE, THREAD, FORKED, FORMAT, ENDED, SYSTEM, INTERNAL.
 * Threads: the back-end's own.
 * Memory: nothing is kept of what it is given.
 */
extern int sapwood_back_end_send_in_wave(sapwood_back_end_t *back_end,
                                         uint32_t stream,
                                         uint64_t wave,
                                         int32_t tag,
                                         sapwood_error_t *error,
                                         const char *format,
                                         ...);

/**
 * Reads all values of a packet into places given by pointers, if its format is this one.
 *
 * A scalar takes a pointer to it. "%s" takes a `const char **`. An array takes a pointer to a
 * pointer (`const double **`; for strings `const char *const **`) and a pointer to its count:
 * uint32_t for "%ad" and its like, uint64_t for "%Ad" and its like; either reads an array that
 * was sent with the other. NULL in place of a pointer leaves that value out.
 *
 * Arrays and strings are not copied: what is read points into the packet, and is gone when the
 * packet (or the answer that has lent it) is freed.
 *
 * Errors: USAGE, FORMAT, INTERNAL.
 * Threads: any.
 * Memory: nothing is kept of what it is given.
 */
extern int sapwood_packet_read(const sapwood_packet_t *packet,
                               sapwood_error_t *error,
                               const char *format,
                               ...);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* SAPWOOD_H */
