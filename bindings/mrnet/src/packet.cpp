/*
 * Packets: values that a tool gave, or that have come and are read where they lie.
 */
#include "mrnet/Packet.h"

#include <cstdlib>
#include <cstring>

#include "contents.hpp"

namespace MRN {

PacketPtr Packet::NullPacket;

PacketContents::PacketContents()
    : stream_id(INVALID_STREAM_ID), tag(0), source(UnknownRank), inlet(UnknownRank),
      values(), has_values(false), destroys(false), is_lenient(false),
      is_concatenation(false), packet(NULL), answer(NULL), lent(NULL)
{
}

PacketContents::~PacketContents()
{
    mrn_free(&values, destroys && lent == NULL);
    sapwood_packet_free(&packet);
    sapwood_answer_free(&answer);
}

bool PacketContents::load(sapwood_error_t* error)
{
    if (has_values)
        return true;
    if (lent == NULL) {
        mrn_check(format.c_str(), error);
        return false;
    }
    has_values = mrn_read(&values, lent, error) == SAPWOOD_OK;
    if (has_values && is_concatenation && values.count == 2) {
        values.count = 1;
        values.values[0].code = uint8_t((values.values[0].code & 0x0f) | SAPWOOD_SHAPE_ARRAY);
        format = "%a" + format.substr(2, format.find(' ') - 2);
    }
    return has_values;
}

namespace {

/* What the constructors have in common. */
PacketContents* begin(unsigned int stream_id, int tag, const char* format)
{
    PacketContents* contents = new PacketContents;
    contents->stream_id = stream_id;
    contents->tag = tag;
    contents->format = format == NULL ? "" : format;
    return contents;
}

}  // namespace

Packet::Packet(unsigned int stream_id, int tag, const char* format, ...)
    : contents_(begin(stream_id, tag, format))
{
    sapwood_error_t failure;
    va_list values;
    va_start(values, format);
    contents_->has_values = mrn_take(&contents_->values, format, values, &failure) == SAPWOOD_OK;
    va_end(values);
    if (!contents_->has_values)
        error(ERR_FORMATSTR, UnknownRank, "%s", failure.text);
}

Packet::Packet(const char* format, va_list values, unsigned int stream_id, int tag)
    : contents_(begin(stream_id, tag, format))
{
    sapwood_error_t failure;
    contents_->has_values = mrn_take(&contents_->values, format, values, &failure) == SAPWOOD_OK;
    if (!contents_->has_values)
        error(ERR_FORMATSTR, UnknownRank, "%s", failure.text);
}

Packet::Packet(unsigned int stream_id, int tag, const void** values, const char* format)
    : contents_(begin(stream_id, tag, format))
{
    sapwood_error_t failure;
    contents_->has_values =
        mrn_take_pointers(&contents_->values, format, values, &failure) == SAPWOOD_OK;
    if (!contents_->has_values)
        error(ERR_FORMATSTR, UnknownRank, "%s", failure.text);
}

Packet::Packet(PacketContents* contents) : contents_(contents) {}

Packet::~Packet()
{
    delete contents_;
}

PacketContents& Packet::contents() const
{
    return *contents_;
}

int Packet::unpack(const char* format, ...)
{
    va_list places;
    va_start(places, format);
    int result = unpack(places, format);
    va_end(places);
    return result;
}

int Packet::unpack(va_list places, const char* format, bool)
{
    sapwood_error_t failure;
    if (contents_->load(&failure) && mrn_unpack(&contents_->values, format, places,
                                                contents_->is_lenient, &failure) == SAPWOOD_OK)
        return 0;
    error(ERR_FORMATSTR, contents_->source, "%s: asked for \"%s\", holds \"%s\"", failure.text,
          format == NULL ? "" : format, contents_->format.c_str());
    return -1;
}

int Packet::get_Tag() const
{
    return contents_->tag;
}

void Packet::set_Tag(int tag)
{
    contents_->tag = tag;
}

unsigned int Packet::get_StreamId() const
{
    return contents_->stream_id;
}

void Packet::set_StreamId(unsigned int stream_id)
{
    contents_->stream_id = stream_id;
}

const char* Packet::get_FormatString() const
{
    sapwood_error_t failure;
    if (contents_->is_concatenation)
        contents_->load(&failure);
    return contents_->format.c_str();
}

Rank Packet::get_InletNodeRank() const
{
    return contents_->inlet;
}

Rank Packet::get_SourceRank() const
{
    return contents_->source;
}

bool Packet::get_Destinations(unsigned int& count, Rank** ranks)
{
    std::vector<Rank>& destinations = contents_->destinations;
    count = unsigned(destinations.size());
    if (ranks != NULL)
        *ranks = destinations.empty() ? NULL : destinations.data();
    return !destinations.empty();
}

bool Packet::set_Destinations(const Rank* ranks, unsigned int count)
{
    if (ranks == NULL || count == 0)
        return false;
    contents_->destinations.assign(ranks, ranks + count);
    return true;
}

bool Packet::operator==(const Packet& other) const
{
    if (contents_->stream_id != other.contents_->stream_id ||
        contents_->tag != other.contents_->tag)
        return false;
    sapwood_error_t failure;
    bool has_one = contents_->load(&failure), has_other = other.contents_->load(&failure);
    return has_one == has_other && mrn_equal(&contents_->values, &other.contents_->values);
}

bool Packet::operator!=(const Packet& other) const
{
    return !(*this == other);
}

void Packet::set_DestroyData(bool destroy)
{
    contents_->destroys = destroy;
}

}  // namespace MRN
