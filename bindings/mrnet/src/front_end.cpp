/*
 * The front-end's side of a network: starting the tree, and what comes and goes on its streams.
 */
#include "front_end.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstring>

namespace MRN {

namespace {

/* The longest text of a topology that back-ends are told of, in bytes. */
const size_t TOPOLOGY_BYTES_MAX = 100000;
/* How many back-ends may attach to each leaf. */
const uint32_t ATTACH_PER_LEAF = 256;
/* MRNet's own default, in seconds. */
const int STARTUP_SECONDS = 120;

/* The program of communication processes: as set, or beside this library, or on the path. */
std::string node_program(const Settings& settings)
{
    std::string named = settings.text("MRNET_COMMNODE_PATH", "MRNET_COMM_PATH");
    if (named.empty())
        named = settings.text("MRN_COMM_PATH");
    if (!named.empty())
        return named;
    Dl_info here;
    if (dladdr(reinterpret_cast<void*>(&ranks_of), &here) != 0 && here.dli_fname != NULL) {
        std::string library = here.dli_fname;
        size_t slash = library.rfind('/');
        std::string folder = slash == std::string::npos ? "." : library.substr(0, slash);
        /* Libraries may be in a folder of their own, such as lib/x86_64-linux-gnu. */
        for (const char* way : {"/../bin/mrnet_commnode", "/../../bin/mrnet_commnode"})
            if (access((folder + way).c_str(), X_OK) == 0)
                return folder + way;
    }
    return "mrnet_commnode";
}

/* Words as the library takes them: pointers, with NULL at the end. */
std::vector<const char*> pointers_to(const std::vector<std::string>& words)
{
    std::vector<const char*> pointers;
    for (const std::string& word : words)
        pointers.push_back(word.c_str());
    pointers.push_back(NULL);
    return pointers;
}

/* The remote shell with its own arguments; nothing for the library's own choice. */
std::vector<std::string> remote_shell(const Settings& settings)
{
    std::vector<std::string> shell = settings.words("XPLAT_RSH");
    std::vector<std::string> arguments = settings.words("XPLAT_RSH_ARGS");
    if (shell.empty() && !arguments.empty())
        shell.push_back("ssh");
    shell.insert(shell.end(), arguments.begin(), arguments.end());
    return shell;
}

}  // namespace

std::vector<uint32_t> ranks_of(const std::string& text)
{
    std::vector<uint32_t> ranks;
    const char* at = text.c_str();
    while (*at != '\0') {
        char* end;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (end == at)
            break;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long rank = first; rank <= last; rank++)
            ranks.push_back(uint32_t(rank));
        at = *end == ',' ? end + 1 : end;
    }
    return ranks;
}

FrontEnd::FrontEnd(Network& network, Rank rank)
    : Engine(network, rank), network_(NULL), is_attaching_(false), last_answering_(0)
{
}

FrontEnd::~FrontEnd()
{
    stop_service();
    for (const std::string& file : attach_files_)
        unlink(file.c_str());
    delete_streams();
    bring();
    for (Line& line : lines_) {
        sapwood_stream_close(&line.handle, NULL);
        sapwood_communicator_free(&line.members);
    }
    for (auto& entry : end_points)
        delete entry.second;
    sapwood_network_close(&network_, NULL);
}

int FrontEnd::bring()
{
    return network_ == NULL ? 0 : sapwood_network_move_to_this_thread(network_, NULL);
}

int FrontEnd::turn(int milliseconds)
{
    return ended ? 0 : sapwood_network_turn(network_, milliseconds, NULL);
}

int FrontEnd::idle_milliseconds()
{
    return sapwood_network_idle_ms(network_);
}

int FrontEnd::descriptor()
{
    return sapwood_network_descriptor(network_);
}

int FrontEnd::write()
{
    return ended ? -1 : sapwood_network_flush(network_, NULL);
}

Rank FrontEnd::shown(Rank real) const
{
    auto found = shown_by_real_.find(real);
    return found == shown_by_real_.end() ? real : found->second;
}

Rank FrontEnd::real(Rank shown) const
{
    auto found = real_by_shown_.find(shown);
    return found == real_by_shown_.end() ? shown : found->second;
}

int FrontEnd::fail(const sapwood_error_t& error)
{
    network.error(code_of(error), rank, "%s", error.text);
    EventType type = error.code == SAPWOOD_ERROR_SYSTEM  ? ErrorEvent::ERROR_SYSTEM
                     : error.code == SAPWOOD_ERROR_USAGE ? ErrorEvent::ERROR_USAGE
                                                         : ErrorEvent::ERROR_INTERNAL;
    deliver(new ErrorEvent(type, new ErrorEvent::ErrorEventData(rank, error.text)));
    return -1;
}

bool FrontEnd::read_topology(const std::string& text, uint32_t attach_per_leaf)
{
    sapwood_topology_t* read = NULL;
    sapwood_topology_node_t node;
    sapwood_error_t error;
    if (sapwood_topology_read(&read, NULL, text.c_str(), attach_per_leaf, &error) != SAPWOOD_OK) {
        network.error(code_of(error), rank, "%s", error.text);
        return false;
    }
    size_t count = sapwood_topology_size(read);
    for (size_t place = 0; place < count; place++) {
        sapwood_topology_node(read, place, &node, &error);
        bool is_back_end = node.role == SAPWOOD_ROLE_BACK_END;
        if (node.role == SAPWOOD_ROLE_FRONT_END)
            rank = node.rank;
        if (!is_back_end || attach_per_leaf == 0)
            topology.add(node.host, 0, node.rank, node.parent, is_back_end);
        if (is_back_end && attach_per_leaf == 0)
            add_end_point(node.rank);
    }
    sapwood_topology_free(&read);
    return true;
}

bool FrontEnd::start(const std::string& topology_text, const char* program,
                     const char** arguments, const Settings& settings)
{
    is_attaching_ = program == NULL;
    is_recovering = settings.text("MRNET_FAILURE_RECOVERY") != "0";
    if (!read_topology(topology_text, is_attaching_ ? ATTACH_PER_LEAF : 0))
        return false;
    std::string node = node_program(settings);
    std::string told = std::string(TOPOLOGY_VARIABLE) + "=" + topology_text;
    std::vector<const char*> words = {node.c_str(), "back-end", program};
    for (size_t at = 0; arguments != NULL && arguments[at] != NULL; at++)
        words.push_back(arguments[at]);
    words.push_back(NULL);
    const char* environment[] = {told.c_str(), NULL};
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    options.topology_file_text = topology_text.c_str();
    options.node_program = node.c_str();
    options.startup_timeout_ms = 1000 * settings.number("MRNET_STARTUP_TIMEOUT", STARTUP_SECONDS);
    options.recovery = is_recovering ? SAPWOOD_RECOVERY_ON : SAPWOOD_RECOVERY_OFF;
    std::vector<std::string> shell = remote_shell(settings), prefix = settings.words("XPLAT_REMCMD");
    std::vector<const char*> shell_words = pointers_to(shell), prefix_words = pointers_to(prefix);
    if (!shell.empty())
        options.remote_shell = shell_words.data();
    options.remote_prefix = prefix_words.data();
    if (is_attaching_) {
        options.attach_per_leaf = ATTACH_PER_LEAF;
        options.transport = SAPWOOD_TRANSPORT_TCP;
    } else {
        options.back_end_argv = words.data();
        if (told.size() < TOPOLOGY_BYTES_MAX)
            options.back_end_environment = environment;
    }
    say(3, "starts %s", node.c_str());
    sapwood_error_t error;
    int code = SAPWOOD_OK;
    start_service([&] { code = sapwood_network_open(&network_, &options, &error); });
    Hold hold(*this);
    if (code != SAPWOOD_OK) {
        ended = true;
        network.error(code_of(error), rank, "%s", error.text);
        return false;
    }
    if (is_attaching_)
        publish_attach_points();
    collect();
    return true;
}

/* A network that has begun without recovery has kept nothing that it could repair itself with. */
bool FrontEnd::set_recovering(bool enable)
{
    sapwood_error_t error;
    int recovery = enable ? SAPWOOD_RECOVERY_ON : SAPWOOD_RECOVERY_OFF;
    if (ended || network_ == NULL)
        return is_recovering == enable;
    if (sapwood_network_switch_recovery(network_, recovery, &error) != SAPWOOD_OK)
        return false;
    is_recovering = enable;
    return true;
}

void FrontEnd::add_end_point(Rank shown_rank)
{
    NetworkTopology::Node* node = topology.find_Node(shown_rank);
    if (node == NULL)
        return;
    CommunicationNode*& end_point = end_points[shown_rank];
    if (end_point == NULL)
        end_point = new CommunicationNode(node->get_HostName(), node->get_Port(), shown_rank);
    if (communicators.empty())
        communicators.push_back(new Communicator(&network));
    communicators.front()->end_points_.insert(end_point);
}

bool FrontEnd::has_data(StreamContents& stream)
{
    if (stream.is_direct) {
        for (auto& arrival : direct_arrivals_)
            if (&arrival.first->contents() == &stream)
                return true;
        return false;
    }
    return stream.handle != NULL && sapwood_stream_waiting(stream.handle) > 0;
}

/* Opens a stream in the tree; most are when they are made, some when they are first used. */
int FrontEnd::open(StreamContents& stream)
{
    if (stream.is_opened)
        return 0;
    std::vector<uint32_t> ranks;
    for (Rank each : stream.ranks)
        ranks.push_back(real(each));
    sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
    std::string up = stream.sync.empty() ? stream.up : stream.sync + "," + stream.up;
    options.up = up.c_str();
    options.down = stream.down.c_str();
    options.up_text = options.down_text = stream.has_loaded ? stream.text.c_str() : NULL;
    /* Built-in filters that are the same everywhere have nothing to do in back-ends. */
    bool is_assigned = (up + stream.down).find('@') != std::string::npos;
    options.filters_at_back_ends = stream.has_loaded || is_assigned;
    options.wave = stream.wave;
    options.wave_timeout_ms = stream.wave_milliseconds;
    sapwood_error_t error;
    if (sapwood_communicator_of_ranks(&stream.members, ranks.data(), ranks.size(), &error) !=
            SAPWOOD_OK ||
        sapwood_stream_open(&stream.handle, network_, stream.members, &options, &error) !=
            SAPWOOD_OK)
        return fail(error);
    stream.is_opened = true;
    stream.id = sapwood_stream_id(stream.handle);
    return tell_filters(stream);
}

/* Back-ends in C know the numbers of a stream's filters. A filter that is built in would take the packet that says
   so for one of the tool's. */
int FrontEnd::tell_filters(StreamContents& stream)
{
    for (const char* name : {"sum", "average", "max", "min", "concatenate", "number-classes"})
        if (stream.down.find(name) != std::string::npos)
            return 0;
    sapwood_error_t error;
    const void* values[] = {stream.assigned_up.c_str(), stream.assigned_sync.c_str(), stream.assigned_down.c_str()};
    int code = sapwood_stream_broadcast_values(stream.handle, TAG_FILTERS_ARE, "%s %s %s", values, 3, &error);
    return code == SAPWOOD_OK ? 0 : fail(error);
}

void FrontEnd::close_handle(Stream& stream)
{
    for (auto at = direct_arrivals_.begin(); at != direct_arrivals_.end();)
        at = at->first == &stream ? direct_arrivals_.erase(at) : std::next(at);
    sapwood_stream_close(&stream.contents().handle, NULL);
    sapwood_communicator_free(&stream.contents().members);
}

int FrontEnd::put(StreamContents& stream, PacketContents& packet, const mrn_pointers& values)
{
    sapwood_error_t error;
    const char* format = packet.format.c_str();
    int code;
    if (stream.is_direct) {
        auto line = line_of_.find(real(stream.peer));
        if (line == line_of_.end())
            return -1;
        code = sapwood_stream_send_to_values(lines_[line->second].handle, real(stream.peer),
                                             packet.tag, format, values.pointers, values.count,
                                             &error);
    } else if (packet.destinations.empty()) {
        code = sapwood_stream_broadcast_values(stream.handle, packet.tag, format, values.pointers,
                                               values.count, &error);
    } else {
        std::vector<uint32_t> ranks;
        for (Rank each : packet.destinations)
            ranks.push_back(real(each));
        sapwood_communicator_t* some = NULL;
        code = sapwood_communicator_of_ranks(&some, ranks.data(), ranks.size(), &error);
        if (code == SAPWOOD_OK)
            code = sapwood_stream_send_to_some_values(stream.handle, some, packet.tag, format,
                                                      values.pointers, values.count, &error);
        sapwood_communicator_free(&some);
    }
    return code == SAPWOOD_OK ? 0 : fail(error);
}

/* The next answer of a stream as a packet. */
int FrontEnd::take_of(Stream& stream, PacketPtr& packet, int milliseconds)
{
    StreamContents& contents = stream.contents();
    sapwood_error_t error;
    for (;;) {
        sapwood_answer_t* answer = NULL;
        const sapwood_packet_t* lent = NULL;
        if (contents.is_closed || (!contents.is_opened && keep(stream) != 0))
            return -1;
        int code = milliseconds > 0
                       ? sapwood_stream_recv(contents.handle, &answer, milliseconds, &error)
                       : sapwood_stream_try_recv(contents.handle, &answer, &error);
        if (code == SAPWOOD_ERROR_TIMEOUT || (code == SAPWOOD_OK && answer == NULL))
            return 0;
        if (code != SAPWOOD_OK)
            return fail(error);
        int code_of_value = sapwood_answer_value(answer, &lent, &error);
        size_t missing = 0;
        const sapwood_missing_t* parts = sapwood_answer_missing(answer, &missing);
        /* A value that lacks what a filter has refused is no answer either. */
        for (size_t at = 0; at < missing && code_of_value == SAPWOOD_OK; at++) {
            if (code_of_filter(parts[at].reason) != ERR_FORMATSTR)
                continue;
            code_of_value = error.code = SAPWOOD_ERROR_NO_VALUE;
            snprintf(error.text, sizeof error.text, "%s: %s", parts[at].ranks, parts[at].reason);
        }
        if (code_of_value != SAPWOOD_OK) {
            sapwood_answer_free(&answer);
            if (missing > 0)
                return fail(error);
            continue;
        }
        PacketContents* made = new PacketContents;
        made->answer = answer;
        made->lent = lent;
        made->stream_id = contents.shown_id();
        made->tag = sapwood_packet_tag(lent);
        made->source = made->inlet = shown(sapwood_packet_origin(lent));
        made->format = sapwood_packet_format(lent);
        made->is_lenient = contents.is_lenient;
        made->is_concatenation = contents.up == "concatenate";
        packet.reset(new Packet(made));
        contents.packets_received++;
        if (!contents.measured.empty() && made->load(&error))
            contents.bytes_received += mrn_payload_bytes(&made->values);
        return 1;
    }
}

int FrontEnd::take_queued(Stream* only, PacketPtr& packet, Stream** stream)
{
    for (auto at = direct_arrivals_.begin(); at != direct_arrivals_.end(); ++at) {
        if (only != NULL && at->first != only)
            continue;
        *stream = at->first;
        packet = at->second;
        direct_arrivals_.erase(at);
        return 1;
    }
    return 0;
}

/* Whether the back-end at the other end of a direct stream may still send. */
bool FrontEnd::is_there(const StreamContents& stream) const
{
    return !stream.is_closed && gone_.count(real(stream.peer)) == 0;
}

int FrontEnd::take(Stream* only, PacketPtr& packet, Stream** stream, int milliseconds)
{
    if (ended || network_ == NULL)
        return -1;
    if (only != NULL && !only->contents().is_direct) {
        int result = take_of(*only, packet, milliseconds);
        collect();
        return result;
    }
    for (bool has_turned = false;; has_turned = true) {
        if (take_queued(only, packet, stream) == 1)
            return 1;
        uint32_t id = only == NULL ? sapwood_network_answering(network_, last_answering_) : 0;
        auto found = streams.find(id);
        if (id != 0 && found != streams.end()) {
            last_answering_ = id;
            *stream = found->second;
            int result = take_of(*found->second, packet, 0);
            if (result != 0)
                return result;
        }
        if (has_turned)
            break;
        turn(milliseconds);
        collect();
    }
    /* Nothing more can come: of a single back-end that is gone, or of a tree that takes no others. */
    bool is_deserted = only == NULL ? !is_attaching_ && sapwood_network_size(network_) == 0
                                    : !is_there(only->contents());
    return ended || is_deserted ? -1 : 0;
}

}  // namespace MRN
