/*
 * A back-end's side of a network: what comes is sorted by stream, and what the layer itself asks is
 * answered here.
 */
#include "back_end.hpp"

#include <cstdlib>
#include <cstring>

namespace MRN {

BackEnd::BackEnd(Network& network, Rank the_rank, Rank parent, Port parent_port)
    : Engine(network, the_rank), back_end_(NULL), parent_(parent), parent_port_(parent_port),
      front_end_(UnknownRank), is_started_(false)
{
}

BackEnd::~BackEnd()
{
    stop_service();
    delete_streams();
    bring();
    sapwood_back_end_close(&back_end_, NULL);
}

bool BackEnd::attach()
{
    const char* parent = getenv("SAPWOOD_PARENT");
    const char* started = getenv("SAPWOOD_RANK");
    sapwood_error_t error;
    is_started_ = parent != NULL && started != NULL && strtoul(started, NULL, 10) == rank;
    std::string file = is_started_ ? "" : attach_file(parent_port_);
    int code = sapwood_back_end_attach_with_filters(&back_end_, is_started_ ? NULL : file.c_str(),
                                                    SAPWOOD_ANY_RANK, &error);
    if (code != SAPWOOD_OK) {
        network.error(code_of(error), rank, "%s", error.text);
        ended = true;
        return false;
    }
    read_topology();
    collect();
    start_service([] {});
    return true;
}

/* The tree as it was planned; attached back-ends know their parent and themselves. */
void BackEnd::read_topology()
{
    const char* text = is_started_ ? getenv(TOPOLOGY_VARIABLE) : NULL;
    sapwood_topology_t* read = NULL;
    sapwood_topology_node_t node;
    if (text != NULL && sapwood_topology_read(&read, NULL, text, 0, NULL) == SAPWOOD_OK) {
        for (size_t place = 0; place < sapwood_topology_size(read); place++) {
            sapwood_topology_node(read, place, &node, NULL);
            topology.add(node.host, 0, node.rank, node.parent, node.role == SAPWOOD_ROLE_BACK_END);
            if (node.role == SAPWOOD_ROLE_FRONT_END)
                front_end_ = node.rank;
        }
        sapwood_topology_free(&read);
        return;
    }
    topology.add(host, parent_port_, parent_, UnknownRank, false);
    topology.add(host, 0, rank, parent_, true);
}

int BackEnd::bring()
{
    return back_end_ == NULL ? 0 : sapwood_back_end_move_to_this_thread(back_end_, NULL);
}

int BackEnd::turn(int milliseconds)
{
    return ended ? 0 : sapwood_back_end_turn(back_end_, milliseconds, NULL);
}

int BackEnd::idle_milliseconds()
{
    return ended ? -1 : sapwood_back_end_idle_ms(back_end_);
}

int BackEnd::descriptor()
{
    return ended ? -1 : sapwood_back_end_descriptor(back_end_);
}

int BackEnd::write()
{
    return ended ? -1 : sapwood_back_end_flush(back_end_, NULL);
}

int BackEnd::fail(const sapwood_error_t& error)
{
    network.error(code_of(error), rank, "%s", error.text);
    EventType type = error.code == SAPWOOD_ERROR_SYSTEM ? ErrorEvent::ERROR_SYSTEM
                                                        : ErrorEvent::ERROR_USAGE;
    deliver(new ErrorEvent(type, new ErrorEvent::ErrorEventData(rank, error.text)));
    return -1;
}

Stream* BackEnd::stream_of(uint32_t id)
{
    Stream*& stream = streams[id];
    if (stream == NULL) {
        StreamContents* contents = new StreamContents;
        contents->id = id;
        contents->is_opened = true;
        contents->ranks.insert(rank);
        stream = new Stream(*this, contents);
    }
    return stream;
}

/* A packet has come: for the tool, or for the layer itself. */
void BackEnd::sort(sapwood_packet_t* packet)
{
    uint32_t id = sapwood_packet_stream(packet);
    int tag = sapwood_packet_tag(packet);
    if (tag >= TAGS_OWN) {
        if (tag == TAG_HELLO)
            say_hello(id, packet);
        else if (tag == TAG_USAGE)
            tell_usage(id, packet);
        sapwood_packet_free(&packet);
        return;
    }
    Stream* stream = stream_of(id);
    StreamContents& contents = stream->contents();
    PacketContents* made = new PacketContents;
    made->packet = packet;
    made->lent = packet;
    made->stream_id = contents.shown_id();
    made->tag = tag;
    made->source = made->inlet = sapwood_packet_origin(packet);
    made->format = sapwood_packet_format(packet);
    sapwood_error_t error;
    if (made->load(&error))
        contents.bytes_received += mrn_payload_bytes(&made->values);
    contents.packets_received++;
    arrivals_.push_back({stream, PacketPtr(new Packet(made))});
    announce(*stream, contents.packets_received);
}

/* The front-end wants to send to single back-ends on this stream. */
void BackEnd::say_hello(uint32_t id, const sapwood_packet_t* packet)
{
    void* places[] = {&front_end_};
    sapwood_packet_read_values(packet, "%ud", places, 1, NULL);
    StreamContents& contents = stream_of(id)->contents();
    contents.is_direct = true;
    contents.peer = front_end_;
    direct_streams[front_end_] = streams[id];
    if (is_started_)
        return;
    uint32_t parent = parent_;
    const void* values[] = {&rank, host.c_str(), &parent};
    sapwood_back_end_send_values(back_end_, id, TAG_HELLO, "%ud %s %ud", values, 3, NULL);
    sapwood_back_end_flush(back_end_, NULL);
}

/* The front-end asks what this process uses, and what has gone over a stream, or over all. */
void BackEnd::tell_usage(uint32_t id, const sapwood_packet_t* packet)
{
    uint32_t asked = 0, own = sapwood_back_end_rank(back_end_), one = 1, columns = ROW_COLUMNS;
    double row[ROW_COLUMNS] = {0};
    void* places[] = {&asked};
    sapwood_packet_read_values(packet, "%ud", places, 1, NULL);
    sapwood_usage(row, NULL);
    for (auto& entry : streams) {
        const StreamContents& contents = entry.second->contents();
        if (asked != 0 && contents.id != asked)
            continue;
        row[USAGE_COLUMNS] += double(contents.bytes_sent);
        row[USAGE_COLUMNS + 1] += double(contents.packets_sent);
        row[USAGE_COLUMNS + 2] += double(contents.bytes_received);
        row[USAGE_COLUMNS + 3] += double(contents.packets_received);
    }
    const void* values[] = {&own, &one, row, &columns};
    sapwood_back_end_send_values(back_end_, id, TAG_USAGE, "%aud %alf", values, 4, NULL);
    sapwood_back_end_flush(back_end_, NULL);
}

void BackEnd::collect()
{
    if (back_end_ == NULL)
        return;
    sapwood_error_t error;
    while (sapwood_back_end_waiting(back_end_) > 0) {
        sapwood_packet_t* packet = NULL;
        if (sapwood_back_end_try_recv(back_end_, &packet, &error) != SAPWOOD_OK || packet == NULL)
            break;
        sort(packet);
    }
    collect_events();
    ended = ended || sapwood_back_end_has_ended(back_end_);
}

void BackEnd::collect_events()
{
    sapwood_event_t event;
    while (sapwood_back_end_next_event(back_end_, &event, NULL) == SAPWOOD_OK &&
           event.kind != SAPWOOD_EVENT_NONE) {
        if (event.kind == SAPWOOD_EVENT_STREAM_OPENED)
            stream_of(event.stream);
        auto found = streams.find(event.stream);
        if (event.kind == SAPWOOD_EVENT_STREAM_CLOSED && found != streams.end())
            found->second->contents().is_closed = true;
    }
}

void BackEnd::close_handle(Stream& stream)
{
    for (auto at = arrivals_.begin(); at != arrivals_.end();)
        at = at->first == &stream ? arrivals_.erase(at) : std::next(at);
}

bool BackEnd::has_data(StreamContents& stream)
{
    for (auto& arrival : arrivals_)
        if (&arrival.first->contents() == &stream)
            return true;
    return false;
}

Stream* BackEnd::direct(Rank to)
{
    auto found = direct_streams.find(to);
    return found == direct_streams.end() ? NULL : found->second;
}

int BackEnd::put(StreamContents& stream, PacketContents& packet, const mrn_pointers& values)
{
    sapwood_error_t error;
    if (ended)
        return -1;
    int code = sapwood_back_end_send_values(back_end_, stream.id, packet.tag,
                                            packet.format.c_str(), values.pointers, values.count,
                                            &error);
    return code == SAPWOOD_OK ? 0 : fail(error);
}

int BackEnd::take_queued(Stream* only, PacketPtr& packet, Stream** stream)
{
    for (auto at = arrivals_.begin(); at != arrivals_.end(); ++at) {
        if (only != NULL && at->first != only)
            continue;
        *stream = at->first;
        packet = at->second;
        arrivals_.erase(at);
        return 1;
    }
    return 0;
}

int BackEnd::take(Stream* only, PacketPtr& packet, Stream** stream, int milliseconds)
{
    if (take_queued(only, packet, stream) == 1)
        return 1;
    if (ended || back_end_ == NULL || (only != NULL && only->contents().is_closed))
        return -1;
    sapwood_packet_t* came = NULL;
    sapwood_error_t error;
    int code = milliseconds > 0
                   ? sapwood_back_end_recv(back_end_, &came, milliseconds, &error)
                   : sapwood_back_end_try_recv(back_end_, &came, &error);
    if (came != NULL)
        sort(came);
    else if (code == SAPWOOD_ERROR_ENDED)
        ended = true;
    else if (code != SAPWOOD_OK && code != SAPWOOD_ERROR_TIMEOUT)
        return fail(error);
    collect_events();
    if (take_queued(only, packet, stream) == 1)
        return 1;
    return ended ? -1 : 0;
}

}  // namespace MRN
