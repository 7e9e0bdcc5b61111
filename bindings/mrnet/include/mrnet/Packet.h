/*
 * A packet: values with their format, on a stream, under a tag.
 */
#ifndef MRNET_PACKET_H
#define MRNET_PACKET_H

#include <cstdarg>

#include "mrnet/DataElement.h"
#include "mrnet/Error.h"
#include "mrnet/Types.h"

namespace MRN {

struct PacketContents;

class Packet : public Error {
  public:
    /* The values follow the format; of an array its elements and their number. Arrays are not
       copied: they have to be there until the packet is sent. */
    Packet(unsigned int stream_id, int tag, const char* format, ...);
    Packet(const char* format, va_list values, unsigned int stream_id, int tag);
    Packet(unsigned int stream_id, int tag, const void** values, const char* format);
    virtual ~Packet();

    static PacketPtr NullPacket;

    /* Gives the values to where the arguments point, arrays and strings as copies for the caller to
       free. 0, or -1 if the format is another than the packet's. */
    int unpack(const char* format, ...);
    int unpack(va_list places, const char* format, bool is_internal = false);
    const DataElement* operator[](unsigned int index) const;

    int get_Tag() const;
    void set_Tag(int tag);
    unsigned int get_StreamId() const;
    void set_StreamId(unsigned int stream_id);
    const char* get_FormatString() const;
    Rank get_InletNodeRank() const;
    Rank get_SourceRank() const;
    bool get_Destinations(unsigned int& count, Rank** ranks);
    bool set_Destinations(const Rank* ranks, unsigned int count);

    bool operator==(const Packet& other) const;
    bool operator!=(const Packet& other) const;

    /* Whether the packet frees the memory that it was given pointers to. */
    void set_DestroyData(bool destroy);

    /* What the layer itself needs; no tool makes or holds contents. */
    explicit Packet(PacketContents* contents);
    PacketContents& contents() const;

  private:
    Packet(const Packet&);
    Packet& operator=(const Packet&);

    PacketContents* contents_;
};

}  // namespace MRN

#endif
