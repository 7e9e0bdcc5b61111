/*
 * Filters with MRNet's signature, by way of sapwood_filter.h.
 *
 * The processes of a tree load this library, and it loads the tool's. A stream gives it one text: a
 * mark of the network, then a line `path function` for every filter that the tool has loaded, an
 * empty line, and the tree (src/filter_site.hpp). Which of the lines is meant is in the filter's name: mrnet0 is the
 * first. The filters mrnet-state0 and so on are the same for functions that give their state away
 * when a process dies; mrnet-parameters takes what goes down for the others.
 *
 * The filters mrnet-sync0, mrnet-sync-state0 and so on run the same functions for synchronisation.
 * Such a function is called with each packet that arrives, keeps those that have to wait in its
 * state, and returns together all that are to be forwarded. So the stream itself uses no
 * synchronisation, and this filter precedes the transformation filter: the packets that it returns
 * together are one wave of that.
 *
 * Back-ends in C++ load this library, too: there a stream's filters run on what the back-end sends and
 * receives, but for those that synchronise.
 */
#include <dlfcn.h>
#include <sapwood_filter.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>

#include "contents.hpp"
#include "engine.hpp"
#include "filter_site.hpp"
#include "mrnet/NetworkTopology.h"

namespace {

using namespace MRN;

/* How many filters a tool may load: MRNET_FILTERS_MAX of the front-end's side. */
const size_t FILTERS_MAX = 32;

typedef void (*Function)(std::vector<PacketPtr>&, std::vector<PacketPtr>&, std::vector<PacketPtr>&,
                         void**, PacketPtr&, const TopologyLocalInfo&);
typedef PacketPtr (*StateFunction)(void**, int);

/* The parameters of a stream's filters, by network and stream for each FilterType, kept for the
   instances of this process. */
struct Parameters {
    std::mutex mutex;
    std::map<std::pair<std::string, uint32_t>, PacketPtr> of_type[FILTER_UPSTREAM_SYNC + 1];
};

Parameters& parameters()
{
    static Parameters kept;
    return kept;
}

/* One instance: a function with its state, of one stream at one process. */
struct Instance {
    std::string mark, format;
    Function function = NULL;
    StateFunction give_state = NULL;
    void* library = NULL;
    void* state = NULL;
    uint32_t stream = 0;
    bool is_synchronisation = false;
    /* The tree and the stream's members, and this process among them once its rank is known. */
    std::string tree;
    std::shared_ptr<FilterSite> site;
    /* What instances of processes that are gone have given away. */
    std::vector<PacketPtr> inherited;

    ~Instance()
    {
        if (site)
            site->leave(stream);
    }
};

int32_t fail(sapwood_filter_out_t* out, const std::string& text)
{
    return sapwood_filter_fail(out, text.c_str());
}

/* The directive of a value, such as %ald. */
std::string directive(const sapwood_filter_value_t& value)
{
    static const char* const NAMES[] = {"", "c", "uc", "hd", "uhd", "d", "ud", "ld", "uld", "f", "lf", "s"};
    static const char* const SHAPES[] = {"", "a", "A"};
    return std::string("%") + SHAPES[value.shape % 3] + NAMES[value.element % 12];
}

/* A copy of one value: the filter may keep the packet. */
void copy_value(const sapwood_filter_value_t& from, mrn_value& to)
{
    to.code = uint8_t(from.element | from.shape << 4);
    to.count = from.shape == SAPWOOD_FILTER_SCALAR ? 1 : from.count;
    bool is_string = from.element == SAPWOOD_FILTER_STRING;
    if (from.shape == SAPWOOD_FILTER_SCALAR && !is_string) {
        memcpy(&to.u, from.data, mrn_element_bytes(to.code));
        return;
    }
    to.owns = 1;
    if (from.shape == SAPWOOD_FILTER_SCALAR) {
        to.u.p = strndup(static_cast<const char*>(from.data), size_t(from.count));
    } else if (!is_string) {
        void* copy = malloc(from.bytes > 0 ? size_t(from.bytes) : 1);
        if (from.bytes > 0)
            memcpy(copy, from.data, size_t(from.bytes));
        to.u.p = copy;
    } else {
        /* Pointers and strings in one piece of memory, to be freed as one. */
        char** texts = static_cast<char**>(
            malloc(size_t(from.count) * sizeof(char*) + size_t(from.bytes) + 1));
        char* room = reinterpret_cast<char*>(texts + from.count);
        const void* at = from.data;
        for (uint64_t each = 0; each < from.count; each++) {
            uint64_t bytes;
            const char* text = sapwood_filter_next_string(&at, &bytes);
            memcpy(room, text, size_t(bytes));
            room[bytes] = '\0';
            texts[each] = room;
            room += bytes + 1;
        }
        to.u.p = texts;
    }
}

PacketPtr packet_of(const sapwood_filter_value_t* values, uint32_t first, uint32_t count, int tag,
                    Rank origin, Rank inlet, uint32_t stream)
{
    PacketContents* made = new PacketContents;
    made->values.count = count - first;
    made->values.values = static_cast<mrn_value*>(calloc(count - first + 1, sizeof(mrn_value)));
    made->has_values = true;
    for (uint32_t at = first; at < count; at++) {
        copy_value(values[at], made->values.values[at - first]);
        made->format += (at > first ? " " : "") + directive(values[at]);
    }
    made->tag = tag;
    made->source = origin;
    made->inlet = inlet;
    made->stream_id = stream + USER_STRM_BASE_ID;
    return PacketPtr(new Packet(made));
}

/* Emits what a filter has made; `way` is SAPWOOD_FILTER_ON or _BACK. */
int32_t emit(sapwood_filter_out_t* out, uint32_t way, const PacketPtr& packet)
{
    sapwood_error_t error;
    if (!packet || !packet->contents().load(&error))
        return fail(out, "the filter has made a packet without values, or of a malformed format");
    const mrn_values& values = packet->contents().values;
    std::vector<sapwood_filter_value_t> made(values.count);
    std::vector<std::string> encoded(values.count);
    for (size_t at = 0; at < values.count; at++) {
        const mrn_value& value = values.values[at];
        uint32_t element = value.code & 0x0f, shape = uint32_t(value.code >> 4);
        const void* data = shape == SAPWOOD_FILTER_SCALAR ? static_cast<const void*>(&value.u)
                                                          : value.u.p;
        made[at] = sapwood_filter_value(data, value.count, mrn_element_bytes(value.code), element,
                                        shape);
        if (element != SAPWOOD_FILTER_STRING)
            continue;
        if (shape == SAPWOOD_FILTER_SCALAR) {
            const char* text = static_cast<const char*>(value.u.p);
            made[at] = sapwood_filter_string(text, strlen(text));
            continue;
        }
        const char* const* texts = static_cast<const char* const*>(value.u.p);
        for (uint64_t each = 0; each < value.count; each++) {
            uint64_t bytes = strlen(texts[each]);
            encoded[at].append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
            encoded[at].append(texts[each], size_t(bytes));
            encoded[at].append(size_t((8 - bytes % 8) % 8), '\0');
        }
        made[at].data = encoded[at].data();
        made[at].bytes = encoded[at].size();
    }
    return sapwood_filter_send(out, way, packet->get_Tag(), made.data(), uint32_t(made.size()));
}

/* Loads the function of one line; gives what is wrong. */
std::string load(Instance& instance, const std::string& line)
{
    size_t space = line.rfind(' ');
    std::string path = line.substr(0, space), name = line.substr(space + 1);
    instance.library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (instance.library == NULL)
        return dlerror();
    void* function = dlsym(instance.library, name.c_str());
    void* format = dlsym(instance.library, (name + "_format_string").c_str());
    void* give_state = dlsym(instance.library, (name + "_get_state").c_str());
    if (function == NULL || format == NULL)
        return path + " has no " + name + ", or no " + name + "_format_string";
    memcpy(&instance.function, &function, sizeof function);
    memcpy(&instance.give_state, &give_state, sizeof give_state);
    const char* text = *static_cast<const char* const*>(format);
    instance.format = text == NULL ? "" : text;
    return "";
}

template <size_t LINE, bool IS_SYNCHRONISATION>
int32_t create(const sapwood_filter_value_t* values, uint32_t count, void** state,
               sapwood_filter_out_t* out)
{
    if (count != 1 || values[0].element != SAPWOOD_FILTER_STRING)
        return fail(out, "a text is wanted that only the front-end's library knows to write");
    std::istringstream text(std::string(static_cast<const char*>(values[0].data), size_t(values[0].count)));
    std::unique_ptr<Instance> instance(new Instance);
    instance->is_synchronisation = IS_SYNCHRONISATION;
    std::getline(text, instance->mark);
    std::string line, chosen;
    for (size_t at = 0; std::getline(text, line) && !line.empty(); at++)
        if (at == LINE)
            chosen = line;
    std::string wrong = LINE == FILTERS_MAX ? "" : load(*instance, chosen);
    if (!wrong.empty())
        return fail(out, wrong);
    std::ostringstream rest;
    rest << text.rdbuf();
    instance->tree = rest.str();
    *state = instance.release();
    return 0;
}

void destroy(void* state)
{
    /* The tool's library stays loaded: what it has made may outlive the stream. */
    delete static_cast<Instance*>(state);
}

PacketPtr parameters_of(const Instance& instance, uint32_t stream, bool is_upward)
{
    Parameters& kept = parameters();
    std::lock_guard<std::mutex> guard(kept.mutex);
    FilterType type = instance.is_synchronisation ? FILTER_UPSTREAM_SYNC
                      : is_upward                 ? FILTER_UPSTREAM_TRANS
                                                  : FILTER_DOWNSTREAM_TRANS;
    auto& all = kept.of_type[type];
    auto found = all.find({instance.mark, stream});
    return found == all.end() ? Packet::NullPacket : found->second;
}

int32_t run(Instance& instance, const sapwood_filter_wave_t* wave, std::vector<PacketPtr>& in,
            sapwood_filter_out_t* out)
{
    std::vector<PacketPtr> onward, back;
    bool is_upward = wave->contributor_ranges > 0;
    PacketPtr given = parameters_of(instance, wave->stream, is_upward);
    TopologyLocalInfo info = instance.site->place();
    try {
        instance.function(in, onward, back, &instance.state, given, info);
    } catch (...) {
        return fail(out, "the filter has thrown an exception");
    }
    int32_t failed = 0;
    for (const PacketPtr& packet : onward)
        failed |= emit(out, SAPWOOD_FILTER_ON, packet);
    for (const PacketPtr& packet : back)
        failed |= emit(out, SAPWOOD_FILTER_BACK, packet);
    return failed;
}

/* Packets pass as they came: of the layer's own, and where a filter that synchronises has nothing to do. */
int32_t pass(const sapwood_filter_packet_t& packet, sapwood_filter_out_t* out)
{
    return sapwood_filter_emit(out, packet.tag, packet.values, packet.value_count);
}

int32_t transform(void* state, const sapwood_filter_wave_t* wave, sapwood_filter_out_t* out)
{
    Instance& instance = *static_cast<Instance*>(state);
    if (!instance.site) {
        instance.stream = wave->stream;
        instance.site = FilterSite::enter(instance.mark, instance.tree, wave->rank, wave->stream);
    }
    FilterSite& site = *instance.site;
    bool is_upward = wave->contributor_ranges > 0, is_back_end = site.kind() == BE_NODE;
    std::vector<PacketPtr> in = std::move(instance.inherited);
    instance.inherited.clear();
    int32_t failed = 0;
    for (uint32_t at = 0; at < wave->packet_count; at++) {
        const sapwood_filter_packet_t& packet = wave->packets[at];
        if (packet.tag >= TAGS_OWN || (is_back_end && instance.is_synchronisation)) {
            failed |= pass(packet, out);
            continue;
        }
        bool is_of_child = is_upward && !is_back_end;
        if (is_of_child && (packet.flags & SAPWOOD_FILTER_LATE) == 0)
            site.note_child(packet.origin);
        Rank origin = site.shown(packet.origin);
        in.push_back(packet_of(packet.values, 0, packet.value_count, packet.tag, origin,
                               is_of_child || !is_upward ? origin : UnknownRank, wave->stream));
        const std::string& format = in.back()->contents().format;
        if (!instance.format.empty() && format != instance.format)
            return fail(out, "the filter takes packets of the format \"" + instance.format +
                                 "\", not \"" + format + "\"");
    }
    return in.empty() ? failed : failed | run(instance, wave, in, out);
}

int32_t save(void* state, sapwood_filter_out_t* out)
{
    Instance& instance = *static_cast<Instance*>(state);
    if (instance.give_state == NULL || instance.state == NULL)
        return 0;
    PacketPtr given = instance.give_state(&instance.state, int(instance.stream + USER_STRM_BASE_ID));
    return given ? emit(out, SAPWOOD_FILTER_ON, given) : 0;
}

int32_t merge(void* state, const sapwood_filter_value_t* values, uint32_t count,
              sapwood_filter_out_t*)
{
    Instance& instance = *static_cast<Instance*>(state);
    instance.inherited.push_back(
        packet_of(values, 0, count, 0, UnknownRank, UnknownRank, instance.stream));
    return 0;
}

/* On the way down: keeps parameters for the filters of this process, and passes everything on. */
int32_t take_parameters(void* state, const sapwood_filter_wave_t* wave, sapwood_filter_out_t* out)
{
    const Instance& instance = *static_cast<const Instance*>(state);
    int32_t failed = 0;
    for (uint32_t at = 0; at < wave->packet_count; at++) {
        const sapwood_filter_packet_t& packet = wave->packets[at];
        failed |= pass(packet, out);
        if (packet.tag != TAG_PARAMETERS || packet.value_count == 0 ||
            packet.values[0].element != SAPWOOD_FILTER_INT32)
            continue;
        int32_t type = *static_cast<const int32_t*>(packet.values[0].data);
        if (type < 0 || type > FILTER_UPSTREAM_SYNC)
            continue;
        Parameters& kept = parameters();
        std::lock_guard<std::mutex> guard(kept.mutex);
        kept.of_type[type][{instance.mark, wave->stream}] =
            packet_of(packet.values, 1, packet.value_count, packet.tag, packet.origin,
                      packet.origin, wave->stream);
    }
    return failed;
}

/* The list of filters: four for each line, with and without a state, for transformation and for
   synchronisation; and the one for parameters. */
struct List {
    std::vector<std::string> names;
    std::vector<sapwood_filter_t> filters;
    sapwood_filter_library_t library;

    template <size_t LINE, bool IS_SYNCHRONISATION>
    void add(const char* prefix, uint32_t state_kind)
    {
        sapwood_filter_t filter = {};
        names.push_back(prefix + std::to_string(LINE));
        filter.create = create<LINE, IS_SYNCHRONISATION>;
        filter.transform = transform;
        filter.destroy = destroy;
        filter.state_kind = state_kind;
        if (state_kind == SAPWOOD_FILTER_COMPOSABLE) {
            filter.save = save;
            filter.merge = merge;
        }
        filters.push_back(filter);
    }

    template <size_t... LINES>
    void add_all(std::index_sequence<LINES...>)
    {
        (add<LINES, false>("mrnet", SAPWOOD_FILTER_REBUILDABLE), ...);
        (add<LINES, false>("mrnet-state", SAPWOOD_FILTER_COMPOSABLE), ...);
        (add<LINES, true>("mrnet-sync", SAPWOOD_FILTER_REBUILDABLE), ...);
        (add<LINES, true>("mrnet-sync-state", SAPWOOD_FILTER_COMPOSABLE), ...);
    }

    List()
    {
        add_all(std::make_index_sequence<FILTERS_MAX>());
        sapwood_filter_t filter = {};
        names.push_back("mrnet-parameters");
        filter.create = create<FILTERS_MAX, false>;
        filter.transform = take_parameters;
        filter.destroy = destroy;
        filters.push_back(filter);
        for (size_t at = 0; at < filters.size(); at++)
            filters[at].name = names[at].c_str();
        library = {SAPWOOD_FILTER_VERSION, sizeof(sapwood_filter_t), uint32_t(filters.size()),
                   filters.data()};
    }
};

}  // namespace

extern "C" const sapwood_filter_library_t* sapwood_filter_v1(void)
{
    static const List* const list = new List;
    return &list->library;
}
