// sapwood.hpp: Sapwood for C++17 and later, without a library of its own, over sapwood.h.
//
// Maps C's handles, error codes and format strings to C++, and nothing else: every object holds one
// handle and gives it back when it goes, every error code is an exception, and the format of what
// is sent or read follows from its types. How a network works is the library's.
//
// Errors. A function that can fail throws sapwood::Error or what is derived from it, with the code of
// sapwood.h in it. Destructors never throw; call close() to see what closing says. After close(), or
// after a move, an object is empty: using it throws an Error with SAPWOOD_ERROR_USAGE.
//
// Memory. What read() gives as a Span, std::string_view or const char * points into the packet, and is
// gone with the packet or with the answer that holds it; std::vector and std::string are copies.
//
// Threads. As in sapwood.h: networks, streams and back-ends belong to the thread that made them,
// answers, packets and communicators may be used by any. A forked child gets SAPWOOD_ERROR_FORKED.
#ifndef SAPWOOD_HPP
#define SAPWOOD_HPP

#include <sapwood/answer.hpp>
#include <sapwood/values.hpp>

#include <initializer_list>
#include <map>
#include <memory>
#include <optional>

namespace sapwood {

// Marks an array whose number of elements is sent in 64 bits ("%Alf" and its like), for more than
// 4294967295 of them or to agree with others that send so.
template <class T>
detail::Large<T> large(const T &elements)
{
    return detail::Large<T>{elements};
}

// Any free rank, for BackEnd::attach_by_file.
inline constexpr std::uint32_t any_rank = SAPWOOD_ANY_RANK;

// The first tag that an application may use.
inline constexpr std::int32_t first_tag = SAPWOOD_FIRST_TAG;

// Values that are put together as a program runs. They are copied, and can be sent many times.
class Values {
public:
    Values() = default;
    Values(Values &&) = default;
    Values &operator=(Values &&) = default;
    // Adds a number, a text, or an array of either.
    template <class T>
    Values &add(const T &value)
    {
        if constexpr (detail::IsLarge<T>::value) {
            arguments_.add(large(kept(elements_of(value.elements))));
        } else if constexpr (detail::is_text<T>) {
            arguments_.add(std::string_view(value));
        } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
            arguments_.add(kept(value));
        } else {
            arguments_.add(kept(elements_of(value)));
        }
        return *this;
    }
    // The format string so far, such as "%d %alf".
    const char *format() const noexcept { return arguments_.format(); }

private:
    friend class Stream;
    friend class BackEnd;

    // A copy of elements; texts among them are copied where they are added.
    template <class T>
    static auto elements_of(const T &elements)
    {
        using Element = typename detail::ElementOf<T>::type;
        return std::vector<Element>(std::begin(elements), std::end(elements));
    }

    // The same in memory that stays where it is.
    template <class T>
    const T &kept(T value)
    {
        auto place = std::make_shared<T>(std::move(value));
        kept_.push_back(place);
        return *place;
    }

    detail::Arguments arguments_;
    std::vector<std::shared_ptr<const void>> kept_;
};

// A set of back-ends. Plain memory: any thread may read it, and it outlives its network.
class Communicator {
public:
    // The back-ends of these ranks, in any order.
    explicit Communicator(Span<const std::uint32_t> ranks)
    {
        detail::check([&](sapwood_error_t *error) {
            return sapwood_communicator_of_ranks(handle_.out(), ranks.data(), ranks.size(), error);
        });
    }
    Communicator(std::initializer_list<std::uint32_t> ranks)
        : Communicator(Span<const std::uint32_t>(ranks.begin(), ranks.size()))
    {
    }
    // The back-ends of a rank set that is written as "0-3,7".
    static Communicator parse(const std::string &ranks)
    {
        Communicator made;
        detail::check([&](sapwood_error_t *error) {
            return sapwood_communicator_parse(made.handle_.out(), ranks.c_str(), error);
        });
        return made;
    }
    std::uint64_t size() const noexcept { return sapwood_communicator_size(handle_.get()); }
    // The ranks as sorted ranges, as long as this communicator.
    Span<const RankRange> ranges() const noexcept
    {
        std::size_t count = 0;
        const RankRange *ranges = sapwood_communicator_ranges(handle_.get(), &count);
        return Span<const RankRange>(ranges, count);
    }

private:
    friend class Network;
    friend class Recipients;
    using Handle = detail::Handle<sapwood_communicator_t,
                                  detail::free_of<sapwood_communicator_t, sapwood_communicator_free>>;

    Communicator() = default;
    Handle handle_;
};

// Which members of a stream a packet goes down to: all of them, or those of a communicator, which
// has to outlive the call. An empty communicator is no back-end, and not all.
class Recipients {
public:
    static Recipients all() noexcept { return Recipients(); }
    Recipients(const Communicator &members) noexcept : members_(members.handle_.get()) {}

private:
    friend class Stream;

    Recipients() = default;
    const sapwood_communicator_t *members_ = nullptr;
};

// One change in a network.
struct Event {
    // A sapwood_event_kind_t.
    int kind = SAPWOOD_EVENT_NONE;
    // The process and the stream that it is about, if it is about one.
    std::uint32_t rank = 0;
    std::uint32_t stream = 0;
    // The back-ends that it is about, as "0-3,7".
    std::string ranks;
    // A description for display.
    std::string text;
    // Why `rank` is lost, with an exit status or signal; Cause::other in events that are of no loss.
    Cause cause = Cause::other;
    std::uint32_t cause_detail = 0;
};

namespace detail {

// The next change of a network or back-end, by its function of the header.
template <class T>
std::optional<Event> next_event(T *handle, int (*next)(T *, sapwood_event_t *, sapwood_error_t *))
{
    sapwood_event_t event;
    check([&](sapwood_error_t *error) { return next(handle, &event, error); });
    if (event.kind == SAPWOOD_EVENT_NONE)
        return std::nullopt;
    return Event{event.kind, event.rank, event.stream, event.ranks, event.text,
                 static_cast<Cause>(event.cause), event.cause_detail};
}

}  // namespace detail

// What a stream is to be. The default has no filters, and waves that wait for all.
struct StreamOptions {
    // Filters on the way up and down, in order, separated by commas, such as "sum".
    std::string up;
    std::string down;
    sapwood_wave_t wave = SAPWOOD_WAVE_ALL;
    // The longest wait of SAPWOOD_WAVE_TIMEOUT.
    std::chrono::milliseconds wave_timeout{0};
    sapwood_policy_t policy = SAPWOOD_POLICY_BLOCK;
    // Bytes under way per link and direction; 0 for the default.
    std::uint32_t window_bytes = 0;
    // A text that filters from files are given as their one parameter, up and down; empty for none.
    std::string up_text;
    std::string down_text;
    // A synchronisation rule from a file, such as "native:libmine.so#quorum" or what Network::ship gives,
    // and the text that it is given as its one parameter; empty for none.
    std::string rule;
    std::string rule_text;
};

// A question whose answer is waited for; it belongs to its stream's thread. When it goes, what comes
// for it is discarded.
class Question {
public:
    // Its number, which its answer has as well.
    std::uint64_t number() const noexcept { return sapwood_question_number(handle_.get()); }
    // The answer; waits for it, and throws what Stream::ask does. Once it was given there is no other.
    Answer wait() { return receive(detail::for_ever); }
    // As wait(); throws Timeout as well, after which it can be called again.
    Answer wait(std::chrono::milliseconds timeout) { return receive(detail::milliseconds(timeout)); }
    // The answer, if it is there already.
    std::optional<Answer> try_wait()
    {
        Answer::Handle answer;
        detail::check([&](sapwood_error_t *error) {
            return sapwood_question_try_wait(handle_.get(), answer.out(), error);
        });
        return answer.get() ? std::optional<Answer>(Answer(std::move(answer))) : std::nullopt;
    }

private:
    friend class Stream;
    using Handle = detail::Handle<sapwood_question_t, sapwood_question_close>;

    explicit Question(Handle &&handle) noexcept : handle_(std::move(handle)) {}

    Answer receive(std::int32_t timeout_ms)
    {
        Answer::Handle answer;
        detail::check([&](sapwood_error_t *error) {
            return sapwood_question_wait(handle_.get(), answer.out(), timeout_ms, error);
        });
        return Answer(std::move(answer));
    }

    Handle handle_;
};

// A logical connection between the front-end and a set of back-ends, with filters in between. It
// belongs to its network's thread, and closes when it goes.
class Stream {
public:
    // Sends values down to all members, in a format that follows from their types. Waits while the
    // stream's window is full; packets are written with Network::flush or the next receive. Throws
    // NoMemberLeft when all members are lost, and Ended.
    template <class... T>
    void broadcast(std::int32_t tag, const T &...values)
    {
        broadcast_arguments(tag, detail::Arguments(values...));
    }
    void broadcast(std::int32_t tag, const Values &values) { broadcast_arguments(tag, values.arguments_); }
    // Sends values down to one member.
    template <class... T>
    void send_to(std::uint32_t rank, std::int32_t tag, const T &...values)
    {
        send_arguments(rank, tag, detail::Arguments(values...));
    }
    void send_to(std::uint32_t rank, std::int32_t tag, const Values &values)
    {
        send_arguments(rank, tag, values.arguments_);
    }
    // Sends values down to these recipients; an empty communicator sends to no back-end. Throws
    // Misuse for a rank that is no member.
    template <class... T>
    void send_to(const Recipients &to, std::int32_t tag, const T &...values)
    {
        send_arguments(to, tag, detail::Arguments(values...));
    }
    void send_to(const Recipients &to, std::int32_t tag, const Values &values)
    {
        send_arguments(to, tag, values.arguments_);
    }
    // As broadcast, if that need not wait. Throws WouldWait when the window is full, so that nothing was
    // sent.
    template <class... T>
    void try_broadcast(std::int32_t tag, const T &...values)
    {
        try_send_arguments(Recipients::all(), tag, detail::Arguments(values...));
    }
    void try_broadcast(std::int32_t tag, const Values &values)
    {
        try_send_arguments(Recipients::all(), tag, values.arguments_);
    }
    // As send_to, if that need not wait. Throws WouldWait when the window is full on the way to one of
    // these recipients, so that nothing was sent.
    template <class... T>
    void try_send_to(const Recipients &to, std::int32_t tag, const T &...values)
    {
        try_send_arguments(to, tag, detail::Arguments(values...));
    }
    void try_send_to(const Recipients &to, std::int32_t tag, const Values &values)
    {
        try_send_arguments(to, tag, values.arguments_);
    }
    // Asks all members and waits for the answer to this question. Back-ends answer with BackEnd::reply.
    //
    // The answer is that of this question and of no other. What comes for a question that is not waited
    // for any more (its time was over, or the answer is a late part) is discarded and counted by
    // discarded(). What back-ends send unasked, or in reply to broadcast, stays for recv, and
    // Answer::question says what it answers. Of several packets that the stream's filters make of one
    // wave, the first is the answer.
    //
    // Throws Misuse on a stream without one answer for all members: one that does not wait for them, or
    // that has several and no filter; and when answers that have not been received fill the stream's
    // window. Throws NoMemberLeft and Ended as recv does.
    template <class... T>
    Answer ask(std::int32_t tag, const T &...values)
    {
        return ask_arguments(detail::for_ever, tag, detail::Arguments(values...));
    }
    Answer ask(std::int32_t tag, const Values &values)
    {
        return ask_arguments(detail::for_ever, tag, values.arguments_);
    }
    // The same within a time, the wait for room included; throws Timeout as well.
    template <class... T>
    Answer ask(std::chrono::milliseconds timeout, std::int32_t tag, const T &...values)
    {
        return ask_arguments(detail::milliseconds(timeout), tag, detail::Arguments(values...));
    }
    Answer ask(std::chrono::milliseconds timeout, std::int32_t tag, const Values &values)
    {
        return ask_arguments(detail::milliseconds(timeout), tag, values.arguments_);
    }
    // Asks without waiting, so that several questions are under way. Throws WouldWait when the stream's
    // window is full, so that nothing was sent.
    template <class... T>
    Question ask_async(std::int32_t tag, const T &...values)
    {
        return begin_question(tag, detail::Arguments(values...));
    }
    Question ask_async(std::int32_t tag, const Values &values) { return begin_question(tag, values.arguments_); }
    // How many answers were discarded because their question was not waited for any more.
    std::uint64_t discarded() const noexcept { return sapwood_stream_discarded(handle_.get()); }
    // The next answer that is none to ask; waits for it. Throws NoMemberLeft when all members are lost,
    // and Ended.
    Answer recv() { return receive(detail::for_ever); }
    // As recv(); throws Timeout as well.
    Answer recv(std::chrono::milliseconds timeout) { return receive(detail::milliseconds(timeout)); }
    // The next answer, if it is there already.
    std::optional<Answer> try_recv()
    {
        Answer::Handle answer;
        detail::check([&](sapwood_error_t *error) {
            return sapwood_stream_try_recv(handle_.get(), answer.out(), error);
        });
        return answer.get() ? std::optional<Answer>(Answer(std::move(answer))) : std::nullopt;
    }
    std::uint32_t id() const noexcept { return sapwood_stream_id(handle_.get()); }
    // How many packets were dropped at the front-end.
    std::uint64_t dropped() const noexcept { return sapwood_stream_dropped(handle_.get()); }
    // Closes the stream everywhere, and throws on failure. Does nothing when it is closed.
    void close() { handle_.close(); }
    sapwood_stream_t *raw() const noexcept { return handle_.get(); }

private:
    friend class Network;
    using Handle = detail::Handle<sapwood_stream_t, sapwood_stream_close>;

    explicit Stream(Handle &&handle) noexcept : handle_(std::move(handle)) {}

    void broadcast_arguments(std::int32_t tag, const detail::Arguments &values)
    {
        detail::check([&](sapwood_error_t *error) {
            return sapwood_stream_broadcast_values(handle_.get(), tag, values.format(), values.pointers(),
                                                   values.count(), error);
        });
    }

    void send_arguments(std::uint32_t rank, std::int32_t tag, const detail::Arguments &values)
    {
        detail::check([&](sapwood_error_t *error) {
            return sapwood_stream_send_to_values(handle_.get(), rank, tag, values.format(),
                                                 values.pointers(), values.count(), error);
        });
    }

    void send_arguments(const Recipients &to, std::int32_t tag, const detail::Arguments &values)
    {
        detail::check([&](sapwood_error_t *error) {
            return sapwood_stream_send_to_some_values(handle_.get(), to.members_, tag, values.format(),
                                                      values.pointers(), values.count(), error);
        });
    }

    void try_send_arguments(const Recipients &to, std::int32_t tag, const detail::Arguments &values)
    {
        detail::check([&](sapwood_error_t *error) {
            return sapwood_stream_try_send_to_some_values(handle_.get(), to.members_, tag, values.format(),
                                                          values.pointers(), values.count(), error);
        });
    }

    Answer ask_arguments(std::int32_t timeout_ms, std::int32_t tag, const detail::Arguments &values)
    {
        Answer::Handle answer;
        detail::check([&](sapwood_error_t *error) {
            return sapwood_stream_ask_values(handle_.get(), answer.out(), timeout_ms, tag, values.format(),
                                             values.pointers(), values.count(), error);
        });
        return Answer(std::move(answer));
    }

    Question begin_question(std::int32_t tag, const detail::Arguments &values)
    {
        Question::Handle question;
        detail::check([&](sapwood_error_t *error) {
            return sapwood_stream_ask_async_values(handle_.get(), question.out(), tag, values.format(),
                                                   values.pointers(), values.count(), error);
        });
        return Question(std::move(question));
    }

    Answer receive(std::int32_t timeout_ms)
    {
        Answer::Handle answer;
        detail::check([&](sapwood_error_t *error) {
            return sapwood_stream_recv(handle_.get(), answer.out(), timeout_ms, error);
        });
        return Answer(std::move(answer));
    }

    Handle handle_;
};

// What a network is to be. One of the two topologies, or the hosts, are needed.
struct NetworkOptions {
    // The shape, such as "16^2" or "4x8".
    std::string topology;
    // The text of a topology file in MRNet's format, instead of `topology`.
    std::string topology_file_text;
    // The back-ends' program and arguments. If there is none, back-ends attach by themselves.
    std::vector<std::string> back_end;
    // Variables that are set for the back-ends.
    std::map<std::string, std::string> back_end_environment;
    // The program of communication processes; if it is empty, what SAPWOOD_NODE names, or
    // `sapwood-node` beside this program or on the search path.
    std::string node_program;
    sapwood_transport_t transport = SAPWOOD_TRANSPORT_AUTOMATIC;
    sapwood_encryption_t encryption = SAPWOOD_ENCRYPTION_DEFAULT;
    // How long the tree may take to start; 0 for 30 seconds, or 60 where other hosts take part.
    std::chrono::milliseconds startup_timeout{0};
    // Whether the network opens even if some processes do not start.
    bool allow_missing = false;
    // How long a filter from a file may take for one wave before it is given up; 0 for 10 seconds, -1 ms
    // for ever.
    std::chrono::milliseconds filter_limit{0};
    // Hosts as a nodeset, such as "node[01-16]", one back-end on each; `topology` is then the shape, or
    // empty for a tree in which no process reaches more than 32 hosts.
    std::string hosts;
    // "ssh", "slurm", "local", or "auto", the default.
    std::string launcher;
    // The remote shell and its own arguments; if there is none, what SAPWOOD_RSH says, or ssh.
    std::vector<std::string> remote_shell;
    // The command by which hosts that are reached by a remote shell run what is started there.
    std::vector<std::string> remote_prefix;
    // The number of a Slurm allocation; empty for the one that this process is in.
    std::string slurm_job;
    // How long a host may take to answer; 0 for 10 seconds.
    std::chrono::milliseconds connect_timeout{0};
};

// A tree of processes, seen from its root. It belongs to the thread that opened it; its destructor ends
// the tree.
class Network {
public:
    // Starts the tree and waits until all processes have joined. If that fails, no process is left
    // running.
    explicit Network(const NetworkOptions &options)
    {
        std::vector<const char *> program = pointers(options.back_end);
        std::vector<std::string> settings;
        for (const auto &[name, value] : options.back_end_environment)
            settings.push_back(name + "=" + value);
        std::vector<const char *> environment = pointers(settings);
        sapwood_network_options_t raw = SAPWOOD_NETWORK_OPTIONS_INIT;
        raw.topology = or_null(options.topology);
        raw.topology_file_text = or_null(options.topology_file_text);
        raw.back_end_argv = options.back_end.empty() ? nullptr : program.data();
        raw.back_end_environment = settings.empty() ? nullptr : environment.data();
        raw.node_program = or_null(options.node_program);
        raw.transport = options.transport;
        raw.encryption = options.encryption;
        raw.startup_timeout_ms = detail::milliseconds(options.startup_timeout);
        raw.allow_missing = options.allow_missing;
        raw.filter_limit_ms = options.filter_limit.count() == detail::for_ever
                                  ? detail::for_ever
                                  : detail::milliseconds(options.filter_limit);
        std::vector<const char *> shell = pointers(options.remote_shell);
        std::vector<const char *> prefix = pointers(options.remote_prefix);
        raw.hosts = or_null(options.hosts);
        raw.launcher = or_null(options.launcher);
        raw.remote_shell = options.remote_shell.empty() ? nullptr : shell.data();
        raw.remote_prefix = prefix.data();
        raw.slurm_job = or_null(options.slurm_job);
        raw.connect_timeout_ms = detail::milliseconds(options.connect_timeout);
        detail::check([&](sapwood_error_t *error) {
            return sapwood_network_open(handle_.out(), &raw, error);
        });
    }
    // How many back-ends are connected now.
    std::uint64_t size() const noexcept { return sapwood_network_size(handle_.get()); }
    // All back-ends that are connected now.
    Communicator everyone() const
    {
        Communicator made;
        detail::check([&](sapwood_error_t *error) {
            return sapwood_communicator_everyone(made.handle_.out(), handle_.get(), error);
        });
        return made;
    }
    // Opens a stream to everyone, or to some.
    Stream open_stream(const StreamOptions &options = {}) { return open(nullptr, options); }
    Stream open_stream(const Communicator &members, const StreamOptions &options = {})
    {
        // An empty communicator is no wish for everyone.
        if (!members.handle_.get())
            detail::raise(SAPWOOD_ERROR_USAGE, "communicator: was moved away");
        return open(members.handle_.get(), options);
    }
    // Sends a file of filters, made with sapwood_filter.h, to every process of the tree: a path, or a name
    // to be looked for in the folders of SAPWOOD_FILTER_PATH. Gives the name by which streams ask for
    // `filter` in it, which may stay empty where a file has one only.
    std::string ship(const std::string &file, const std::string &filter = {})
    {
        const char *name = nullptr;
        detail::check([&](sapwood_error_t *error) {
            return sapwood_network_ship(handle_.get(), file.c_str(), or_null(filter), &name, error);
        });
        return name;
    }
    // The attach points, a line "parent-rank address ranks" for each.
    std::string attach_points() const
    {
        const char *points = sapwood_network_attach_points(handle_.get());
        return points ? points : "";
    }
    // Writes what back-ends need to attach: the key into a new file of mode 0600, and the places.
    void write_attach_file(const std::string &path, const std::string &key_path) const
    {
        detail::check([&](sapwood_error_t *error) {
            return sapwood_network_write_attach_file(handle_.get(), path.c_str(), key_path.c_str(), error);
        });
    }
    // Waits until `count` back-ends are connected. Throws Timeout.
    void wait_for_back_ends(std::uint64_t count, std::chrono::milliseconds timeout)
    {
        detail::check([&](sapwood_error_t *error) {
            return sapwood_network_wait_for_back_ends(handle_.get(), count, detail::milliseconds(timeout),
                                                      error);
        });
    }
    // The next change in the network, if there is one.
    std::optional<Event> next_event() { return detail::next_event(handle_.get(), sapwood_network_next_event); }
    // Lets the network work until something has happened, or the time is over.
    void turn(std::chrono::milliseconds timeout)
    {
        detail::check([&](sapwood_error_t *error) {
            return sapwood_network_turn(handle_.get(), detail::milliseconds(timeout), error);
        });
    }
    // Writes the packets sent so far, as far as the system takes them.
    void flush()
    {
        detail::check([&](sapwood_error_t *error) { return sapwood_network_flush(handle_.get(), error); });
    }
    // Readable when there is something to do; the network's own. Receive until nothing is there before
    // waiting for it.
    int descriptor() const noexcept { return sapwood_network_descriptor(handle_.get()); }
    // Ends the tree, and throws on failure. Does nothing when it is closed.
    void close() { handle_.close(); }
    sapwood_network_t *raw() const noexcept { return handle_.get(); }

private:
    using Handle = detail::Handle<sapwood_network_t, sapwood_network_close>;

    static const char *or_null(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

    static std::vector<const char *> pointers(const std::vector<std::string> &texts)
    {
        std::vector<const char *> pointers;
        for (const std::string &text : texts)
            pointers.push_back(text.c_str());
        pointers.push_back(nullptr);
        return pointers;
    }

    Stream open(const sapwood_communicator_t *members, const StreamOptions &options)
    {
        sapwood_stream_options_t raw = SAPWOOD_STREAM_OPTIONS_INIT;
        raw.up = or_null(options.up);
        raw.down = or_null(options.down);
        raw.wave = options.wave;
        raw.wave_timeout_ms = static_cast<std::uint32_t>(detail::milliseconds(options.wave_timeout));
        raw.policy = options.policy;
        raw.window_bytes = options.window_bytes;
        raw.up_text = or_null(options.up_text);
        raw.down_text = or_null(options.down_text);
        raw.rule = or_null(options.rule);
        raw.rule_text = or_null(options.rule_text);
        Stream::Handle stream;
        detail::check([&](sapwood_error_t *error) {
            return sapwood_stream_open(stream.out(), handle_.get(), members, &raw, error);
        });
        return Stream(std::move(stream));
    }

    Handle handle_;
};

// A leaf of the tree. It belongs to the thread that attached it; its destructor leaves the network.
class BackEnd {
public:
    // Joins the network that has started this program.
    static BackEnd attach()
    {
        BackEnd made;
        detail::check([&](sapwood_error_t *error) {
            return sapwood_back_end_attach(made.handle_.out(), error);
        });
        return made;
    }
    // Joins a network by the file that Network::write_attach_file wrote.
    static BackEnd attach_by_file(const std::string &path, std::uint32_t rank = any_rank)
    {
        BackEnd made;
        detail::check([&](sapwood_error_t *error) {
            return sapwood_back_end_attach_by_file(made.handle_.out(), path.c_str(), rank, error);
        });
        return made;
    }
    std::uint32_t rank() const noexcept { return sapwood_back_end_rank(handle_.get()); }
    // The next packet on any stream; waits for it. Throws Ended when the network ends.
    Packet recv() { return receive(detail::for_ever); }
    // As recv(); throws Timeout as well.
    Packet recv(std::chrono::milliseconds timeout) { return receive(detail::milliseconds(timeout)); }
    // The next packet, if it is there already.
    std::optional<Packet> try_recv()
    {
        Packet::Handle packet;
        detail::check([&](sapwood_error_t *error) {
            return sapwood_back_end_try_recv(handle_.get(), packet.out(), error);
        });
        return packet.get() ? std::optional<Packet>(Packet(std::move(packet))) : std::nullopt;
    }
    // Sends values up on a stream, in its next wave: unasked, as the answer to no packet in particular,
    // which reply is for. They leave with flush or the next receive.
    template <class... T>
    void send(std::uint32_t stream, std::int32_t tag, const T &...values)
    {
        send_arguments(stream, tag, detail::Arguments(values...));
    }
    void send(std::uint32_t stream, std::int32_t tag, const Values &values)
    {
        send_arguments(stream, tag, values.arguments_);
    }
    // Sends values in a wave of that number; waves that are left out are missed by this back-end.
    template <class... T>
    void send_in_wave(std::uint32_t stream, std::uint64_t wave, std::int32_t tag, const T &...values)
    {
        const detail::Arguments arguments(values...);
        detail::check([&](sapwood_error_t *error) {
            return sapwood_back_end_send_in_wave_values(handle_.get(), stream, wave, tag, arguments.format(),
                                                        arguments.pointers(), arguments.count(), error);
        });
    }
    // As send, if that need not wait. Throws WouldWait when the window is full, so that nothing was
    // sent.
    template <class... T>
    void try_send(std::uint32_t stream, std::int32_t tag, const T &...values)
    {
        const detail::Arguments arguments(values...);
        detail::check([&](sapwood_error_t *error) {
            return sapwood_back_end_try_send_values(handle_.get(), stream, tag, arguments.format(),
                                                    arguments.pointers(), arguments.count(), error);
        });
    }
    // Answers a packet of the front-end's: sends values on its stream with its tag, as the answer to this
    // packet and to no other, which is how Stream::ask knows its answer. Each packet is answered once, in
    // the order of their arrival; one that is passed over gets no answer of this back-end. Gives whether
    // the stream is still open: the front-end that has closed it wants no answer.
    template <class... T>
    bool reply(const PacketView &packet, const T &...values)
    {
        return reply_arguments(sapwood_back_end_reply_values, packet, detail::Arguments(values...));
    }
    bool reply(const PacketView &packet, const Values &values)
    {
        return reply_arguments(sapwood_back_end_reply_values, packet, values.arguments_);
    }
    // As reply, if that need not wait. Throws WouldWait when the window is full, so that nothing was sent.
    template <class... T>
    bool try_reply(const PacketView &packet, const T &...values)
    {
        return reply_arguments(sapwood_back_end_try_reply_values, packet, detail::Arguments(values...));
    }
    bool try_reply(const PacketView &packet, const Values &values)
    {
        return reply_arguments(sapwood_back_end_try_reply_values, packet, values.arguments_);
    }
    // Writes the packets sent so far, as far as the system takes them.
    void flush()
    {
        detail::check([&](sapwood_error_t *error) { return sapwood_back_end_flush(handle_.get(), error); });
    }
    // Waits until a stream is open here, for a back-end that speaks first; gives its number.
    std::uint32_t wait_for_stream(std::chrono::milliseconds timeout)
    {
        std::uint32_t stream = 0;
        detail::check([&](sapwood_error_t *error) {
            return sapwood_back_end_wait_for_stream(handle_.get(), &stream, detail::milliseconds(timeout),
                                                    error);
        });
        return stream;
    }
    // The next change in the network, if there is one.
    std::optional<Event> next_event() { return detail::next_event(handle_.get(), sapwood_back_end_next_event); }
    // Lets the network work until something has happened, or the time is over.
    void turn(std::chrono::milliseconds timeout)
    {
        detail::check([&](sapwood_error_t *error) {
            return sapwood_back_end_turn(handle_.get(), detail::milliseconds(timeout), error);
        });
    }
    bool has_ended() const noexcept { return sapwood_back_end_has_ended(handle_.get()); }
    // Readable when there is work; the back-end's own.
    int descriptor() const noexcept { return sapwood_back_end_descriptor(handle_.get()); }
    // Leaves the network, and throws on failure. Does nothing when it is closed.
    void close() { handle_.close(); }
    sapwood_back_end_t *raw() const noexcept { return handle_.get(); }

private:
    using Handle = detail::Handle<sapwood_back_end_t, sapwood_back_end_close>;

    BackEnd() = default;

    void send_arguments(std::uint32_t stream, std::int32_t tag, const detail::Arguments &values)
    {
        detail::check([&](sapwood_error_t *error) {
            return sapwood_back_end_send_values(handle_.get(), stream, tag, values.format(),
                                                values.pointers(), values.count(), error);
        });
    }

    template <class F>
    bool reply_arguments(F call, const PacketView &packet, const detail::Arguments &values)
    {
        bool is_open = false;
        detail::check([&](sapwood_error_t *error) {
            return call(handle_.get(), packet.raw(), &is_open, values.format(), values.pointers(),
                        values.count(), error);
        });
        return is_open;
    }

    Packet receive(std::int32_t timeout_ms)
    {
        Packet::Handle packet;
        detail::check([&](sapwood_error_t *error) {
            return sapwood_back_end_recv(handle_.get(), packet.out(), timeout_ms, error);
        });
        return Packet(std::move(packet));
    }

    Handle handle_;
};

}  // namespace sapwood

#include <sapwood/sketch.hpp>

#endif  // SAPWOOD_HPP
