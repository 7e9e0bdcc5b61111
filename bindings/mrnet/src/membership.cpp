/*
 * The members of the tree, as the front-end knows them: processes that come, go and find new parents,
 * back-ends that attach, and what each of them tells of itself.
 */
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "front_end.hpp"

namespace MRN {

namespace {

/* How long back-ends have to tell what they use, in milliseconds. */
enum { ROWS_TIMEOUT_MS = 5000 };

}  // namespace

void FrontEnd::collect()
{
    if (network_ == NULL)
        return;
    sapwood_event_t event;
    while (!ended && sapwood_network_next_event(network_, &event, NULL) == SAPWOOD_OK &&
           event.kind != SAPWOOD_EVENT_NONE)
        tell(event);
    for (size_t at = 0; at < lines_.size(); at++)
        take_direct(lines_[at]);
    bool is_wanted = events.is_Wanted(Event::DATA_EVENT);
    if (!is_wanted && watched == 0)
        return;
    for (auto& entry : streams) {
        StreamContents& contents = entry.second->contents();
        if (contents.handle != NULL && (contents.pipe || is_wanted))
            announce(*entry.second,
                     contents.packets_received + sapwood_stream_waiting(contents.handle));
    }
}

void FrontEnd::tell(const sapwood_event_t& event)
{
    say(3, "event %d: rank %u, back-ends %s: %s", event.kind, event.rank, event.ranks, event.text);
    switch (event.kind) {
    case SAPWOOD_EVENT_JOINED:
        for (uint32_t each : ranks_of(event.ranks))
            gone_.erase(each);
        if (is_attaching_)
            greet(event.ranks);
        break;
    case SAPWOOD_EVENT_LOST: {
        std::vector<uint32_t> ranks = ranks_of(event.ranks);
        gone_.insert(ranks.begin(), ranks.end());
        for (uint32_t each : ranks)
            lose(shown(each));
        if (topology.find_Node(shown(event.rank)) != NULL)
            lose(shown(event.rank));
        break;
    }
    case SAPWOOD_EVENT_BROKEN:
        lose(event.rank);
        break;
    case SAPWOOD_EVENT_REPAIRED: {
        std::vector<uint32_t> orphans = ranks_of(event.orphans);
        Rank adopter = event.adopter;
        for (uint32_t orphan : orphans) {
            topology.move(shown(orphan), adopter);
            deliver(new TopologyEvent(TopologyEvent::TOPOL_CHANGE_PARENT,
                                      new TopologyEvent::TopolEventData(shown(orphan), adopter)));
        }
        break;
    }
    case SAPWOOD_EVENT_FILTER_FAILED: {
        network.error(code_of_filter(event.text), rank, "%s", event.text);
        deliver(new ErrorEvent(ErrorEvent::ERROR_INTERNAL,
                               new ErrorEvent::ErrorEventData(rank, event.text)));
        break;
    }
    case SAPWOOD_EVENT_ENDED:
        ended = true;
        break;
    default:
        break;
    }
}

void FrontEnd::lose(Rank shown_rank)
{
    NetworkTopology::Node* node = topology.find_Node(shown_rank);
    Rank parent = node == NULL ? UnknownRank : node->get_Parent();
    topology.remove(shown_rank);
    auto end_point = end_points.find(shown_rank);
    if (end_point != end_points.end() && !communicators.empty())
        communicators.front()->end_points_.erase(end_point->second);
    deliver(new TopologyEvent(TopologyEvent::TOPOL_REMOVE_NODE,
                              new TopologyEvent::TopolEventData(shown_rank, parent)));
}

/* Leaves a file for each place, where attached back-ends look by the port that they are given. */
void FrontEnd::publish_attach_points()
{
    std::string folder = runtime_folder();
    std::string path = folder + "/mrnet-" + std::to_string(getpid()) + "-" +
                       std::to_string(reinterpret_cast<uintptr_t>(this)) + ".all";
    std::string key = path + ".key";
    sapwood_error_t error;
    if (sapwood_network_write_attach_file(network_, path.c_str(), key.c_str(), &error) !=
        SAPWOOD_OK) {
        fail(error);
        return;
    }
    attach_files_ = {path, key};
    std::ifstream all(path);
    for (std::string line; std::getline(all, line);) {
        std::istringstream words(line);
        Rank parent = UnknownRank;
        std::string address;
        words >> parent >> address;
        size_t colon = address.rfind(':');
        Port at = colon == std::string::npos ? Port(0) : Port(atoi(address.c_str() + colon + 1));
        topology.set_Port(parent, at);
        if (parent == rank)
            port = at;
        attach_files_.push_back(attach_file(at));
        std::ofstream(attach_files_.back()) << line << '\n';
    }
}

FrontEnd::Line* FrontEnd::open_line(const std::vector<uint32_t>& ranks, bool says_hello)
{
    Line line = {NULL, NULL};
    sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
    options.wave = SAPWOOD_WAVE_IMMEDIATE;
    sapwood_error_t error;
    uint32_t own = rank;
    const void* values[] = {&own};
    if (sapwood_communicator_of_ranks(&line.members, ranks.data(), ranks.size(), &error) !=
            SAPWOOD_OK ||
        sapwood_stream_open(&line.handle, network_, line.members, &options, &error) !=
            SAPWOOD_OK ||
        sapwood_stream_broadcast_values(line.handle, TAG_HELLO, "%ud", values, 1, &error) !=
            SAPWOOD_OK ||
        (says_hello && sapwood_network_flush(network_, &error) != SAPWOOD_OK)) {
        fail(error);
        sapwood_stream_close(&line.handle, NULL);
        sapwood_communicator_free(&line.members);
        return NULL;
    }
    for (uint32_t each : ranks)
        line_of_[each] = lines_.size();
    lines_.push_back(line);
    return &lines_.back();
}

void FrontEnd::greet(const std::string& ranks)
{
    std::vector<uint32_t> fresh;
    for (uint32_t each : ranks_of(ranks))
        if (line_of_.find(each) == line_of_.end())
            fresh.push_back(each);
    if (!fresh.empty())
        open_line(fresh, true);
}

void FrontEnd::take_direct(Line& line)
{
    sapwood_error_t error;
    while (sapwood_stream_waiting(line.handle) > 0) {
        sapwood_answer_t* answer = NULL;
        const sapwood_packet_t* packet = NULL;
        if (sapwood_stream_try_recv(line.handle, &answer, &error) != SAPWOOD_OK)
            return;
        if (sapwood_answer_value(answer, &packet, &error) != SAPWOOD_OK) {
            sapwood_answer_free(&answer);
            continue;
        }
        Rank from = sapwood_packet_origin(packet);
        if (sapwood_packet_tag(packet) == TAG_HELLO) {
            welcome(from, packet);
            sapwood_answer_free(&answer);
            continue;
        }
        Stream* stream = direct(shown(from));
        PacketContents* made = new PacketContents;
        made->answer = answer;
        made->lent = packet;
        made->stream_id = shown(from);
        made->tag = sapwood_packet_tag(packet);
        made->source = made->inlet = shown(from);
        made->format = sapwood_packet_format(packet);
        PacketPtr arrived(new Packet(made));
        if (stream != NULL) {
            stream->contents().packets_received++;
            direct_arrivals_.push_back({stream, arrived});
            announce(*stream, stream->contents().packets_received);
        }
    }
}

/* An attached back-end has told the rank that it has chosen, its host and its parent. */
void FrontEnd::welcome(Rank real_rank, const sapwood_packet_t* packet)
{
    uint32_t chosen = real_rank, parent = rank;
    const char* host_name = "";
    void* places[] = {&chosen, &host_name, &parent};
    sapwood_error_t error;
    if (sapwood_packet_read_values(packet, "%ud %s %ud", places, 3, &error) != SAPWOOD_OK ||
        shown_by_real_.find(real_rank) != shown_by_real_.end())
        return;
    if (real_by_shown_.find(chosen) != real_by_shown_.end() || topology.find_Node(chosen) != NULL)
        chosen = real_rank;
    shown_by_real_[real_rank] = chosen;
    real_by_shown_[chosen] = real_rank;
    topology.add(host_name, 0, chosen, parent, true);
    add_end_point(chosen);
    deliver(new TopologyEvent(TopologyEvent::TOPOL_ADD_BE,
                              new TopologyEvent::TopolEventData(chosen, parent)));
}

Stream* FrontEnd::direct(Rank shown_rank)
{
    auto found = direct_streams.find(shown_rank);
    if (found != direct_streams.end())
        return found->second;
    if (end_points.find(shown_rank) == end_points.end())
        return NULL;
    if (line_of_.find(real(shown_rank)) == line_of_.end()) {
        std::vector<uint32_t> ranks;
        for (auto& entry : end_points)
            if (topology.find_Node(entry.first) != NULL && line_of_.count(real(entry.first)) == 0)
                ranks.push_back(real(entry.first));
        if (ranks.empty() || open_line(ranks, false) == NULL)
            return NULL;
    }
    StreamContents* contents = new StreamContents;
    contents->is_direct = contents->is_opened = true;
    contents->peer = shown_rank;
    contents->ranks.insert(shown_rank);
    return direct_streams[shown_rank] = new Stream(*this, contents);
}

bool FrontEnd::collect_rows(unsigned int stream, std::map<Rank, std::vector<double>>& rows)
{
    sapwood_stream_t* asked = NULL;
    sapwood_answer_t* answer = NULL;
    const sapwood_packet_t* packet = NULL;
    sapwood_stream_options_t options = SAPWOOD_STREAM_OPTIONS_INIT;
    options.up = "usage";
    sapwood_error_t error;
    uint32_t number = stream;
    const void* values[] = {&number};
    const uint32_t* ranks = NULL;
    const double* numbers = NULL;
    uint32_t rank_count = 0, number_count = 0;
    void* places[] = {&ranks, &rank_count, &numbers, &number_count};
    bool is_good =
        sapwood_stream_open(&asked, network_, NULL, &options, &error) == SAPWOOD_OK &&
        sapwood_stream_broadcast_values(asked, TAG_USAGE, "%ud", values, 1, &error) ==
            SAPWOOD_OK &&
        sapwood_stream_recv(asked, &answer, ROWS_TIMEOUT_MS, &error) == SAPWOOD_OK &&
        sapwood_answer_value(answer, &packet, &error) == SAPWOOD_OK &&
        sapwood_packet_read_values(packet, "%aud %alf", places, 4, &error) == SAPWOOD_OK &&
        number_count == rank_count * ROW_COLUMNS;
    for (uint32_t at = 0; is_good && at < rank_count; at++)
        rows[shown(ranks[at])].assign(numbers + at * ROW_COLUMNS,
                                      numbers + (at + 1) * ROW_COLUMNS);
    if (!is_good)
        fail(error);
    sapwood_answer_free(&answer);
    sapwood_stream_close(&asked, NULL);
    return is_good;
}

}  // namespace MRN
