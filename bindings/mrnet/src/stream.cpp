/*
 * Streams, as tools see them; the engine does what they ask.
 */
#include "mrnet/Stream.h"

#include <cstdlib>

#include "engine.hpp"
#include "performance.hpp"

namespace MRN {

StreamContents::StreamContents()
    : id(0), is_closed(false), is_direct(false), peer(UnknownRank), is_lenient(false),
      announced(0), packets_sent(0), bytes_sent(0), packets_received(0), bytes_received(0),
      handle(NULL), members(NULL), is_opened(false), has_loaded(false),
      wave(SAPWOOD_WAVE_ALL),
      wave_milliseconds(0)
{
}

StreamContents::~StreamContents() {}

unsigned int StreamContents::shown_id() const
{
    return is_direct ? peer : id + USER_STRM_BASE_ID;
}

Stream::Stream(Engine& engine, StreamContents* contents) : engine_(engine), contents_(contents) {}

Stream::~Stream()
{
    engine_.close_stream(*this);
    delete contents_;
}

StreamContents& Stream::contents() const
{
    return *contents_;
}

int Stream::send(int tag, const char* format, ...)
{
    va_list values;
    va_start(values, format);
    int result = send(format, values, tag);
    va_end(values);
    return result;
}

int Stream::send(const char* format, va_list values, int tag)
{
    PacketPtr packet(new Packet(format, values, contents_->shown_id(), tag));
    return send(packet);
}

int Stream::send(int tag, const void** values, const char* format)
{
    PacketPtr packet(new Packet(contents_->shown_id(), tag, values, format));
    return send(packet);
}

int Stream::send(PacketPtr& packet)
{
    if (!packet) {
        engine_.network.error(ERR_PACKING, engine_.rank, "a packet that is none was sent");
        return -1;
    }
    int tag = packet->get_Tag();
    if (tag < FirstApplicationTag || tag >= TAGS_OWN) {
        engine_.network.error(ERR_PACKING, engine_.rank, "tag %d is none of a tool's: those are %d to %d",
                              tag, FirstApplicationTag, TAGS_OWN - 1);
        return -1;
    }
    return engine_.send(*this, packet->contents());
}

int Stream::flush() const
{
    return contents_->is_closed ? -1 : engine_.flush();
}

int Stream::recv(int* tag, PacketPtr& packet, bool blocking)
{
    return engine_.recv(this, tag, packet, NULL, blocking);
}

const std::set<Rank>& Stream::get_EndPoints() const
{
    return contents_->ranks;
}

void Stream::get_ChildRanks(std::set<Rank>& ranks) const
{
    Engine::Hold hold(engine_);
    engine_.topology.add_ChildrenTo(contents_->ranks, engine_.rank, ranks);
}

unsigned int Stream::get_Id() const
{
    Engine::Hold hold(engine_);
    if (!contents_->is_direct)
        engine_.keep(const_cast<Stream&>(*this));
    return contents_->shown_id();
}

unsigned int Stream::size() const
{
    return unsigned(contents_->ranks.size());
}

bool Stream::has_Data()
{
    engine_.refresh();
    Engine::Hold hold(engine_);
    return engine_.has_data(*contents_);
}

bool Stream::is_Closed() const
{
    engine_.refresh();
    Engine::Hold hold(engine_);
    return contents_->is_closed || engine_.ended;
}

bool Stream::is_ShutDown() const
{
    return is_Closed();
}

int Stream::get_DataNotificationFd()
{
    Engine::Hold hold(engine_);
    if (!contents_->pipe) {
        contents_->pipe.reset(new EventPipe);
        engine_.watched++;
        contents_->announced = 0;
        if (engine_.has_data(*contents_))
            contents_->pipe->signal();
    }
    return contents_->pipe->get_ReadFd();
}

void Stream::clear_DataNotificationFd()
{
    Engine::Hold hold(engine_);
    if (contents_->pipe)
        contents_->pipe->clear();
}

void Stream::close_DataNotificationFd()
{
    Engine::Hold hold(engine_);
    engine_.watched -= contents_->pipe != nullptr;
    contents_->pipe.reset();
}

int Stream::set_FilterParameters(FilterType type, const char* format, ...) const
{
    va_list values;
    va_start(values, format);
    int result = set_FilterParameters(format, values, type);
    va_end(values);
    return result;
}

int Stream::set_FilterParameters(const char* format, va_list values, FilterType type) const
{
    Packet packet(format, values, contents_->shown_id(), TAG_PARAMETERS);
    if (packet.has_Error()) {
        engine_.network.error(ERR_FORMATSTR, engine_.rank, "%s",
                              packet.get_ErrorStr(packet.get_Error()));
        return -1;
    }
    if (!engine_.is_front_end())
        return -1;
    if (type != FILTER_UPSTREAM_SYNC || !contents_->sync.empty()) {
        /* Transformations that are built in take none. */
        return contents_->has_loaded ? send_parameters(packet, type) : 0;
    }
    Engine::Hold hold(engine_);
    const DataElement* wait = packet[0];
    if (wait == NULL || (wait->get_Type() != UINT32_T && wait->get_Type() != INT32_T) ||
        contents_->wave != SAPWOOD_WAVE_TIMEOUT || contents_->is_opened) {
        engine_.network.error(ERR_INTERNAL, engine_.rank,
                              "the time-out of a wave is one %%ud, set before the stream is used");
        return -1;
    }
    contents_->wave_milliseconds = wait->get_uint32_t();
    return engine_.keep(const_cast<Stream&>(*this));
}

/* Parameters go down the stream itself, behind what was sent before; their first value says whose
   they are. */
int Stream::send_parameters(Packet& packet, FilterType type) const
{
    const mrn_values& given = packet.contents().values;
    PacketContents* made = new PacketContents;
    made->values.values = static_cast<mrn_value*>(calloc(given.count + 1, sizeof(mrn_value)));
    made->values.count = given.count + 1;
    made->values.values[0].code = SAPWOOD_TYPE_INT32;
    made->values.values[0].count = 1;
    made->values.values[0].u.d = type;
    for (size_t at = 0; at < given.count; at++) {
        made->values.values[at + 1] = given.values[at];
        made->values.values[at + 1].owns = 0;
    }
    made->has_values = true;
    made->format = "%d " + packet.contents().format;
    made->tag = TAG_PARAMETERS;
    PacketPtr whole(new Packet(made));
    return engine_.send(const_cast<Stream&>(*this), whole->contents());
}

bool Stream::enable_PerformanceData(perfdata_metric_t metric, perfdata_context_t context)
{
    if (!is_measurable(metric, context))
        return false;
    Engine::Hold hold(engine_);
    contents_->measured.insert({metric, context});
    return true;
}

bool Stream::disable_PerformanceData(perfdata_metric_t metric, perfdata_context_t context)
{
    Engine::Hold hold(engine_);
    return contents_->measured.erase({metric, context}) > 0;
}

bool Stream::collect_PerformanceData(rank_perfdata_map& by_rank, perfdata_metric_t metric,
                                     perfdata_context_t context, int aggregation)
{
    Engine::Hold hold(engine_);
    return collect_measured(engine_, *contents_, by_rank, metric, context, aggregation);
}

void Stream::print_PerformanceData(perfdata_metric_t metric, perfdata_context_t context)
{
    rank_perfdata_map by_rank;
    if (collect_PerformanceData(by_rank, metric, context))
        print_measured(contents_->shown_id(), by_rank, metric, context);
}

}  // namespace MRN
