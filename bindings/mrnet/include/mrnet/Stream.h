/*
 * A stream: a logical connection between the front-end and the end-points of a communicator, with
 * filters in between.
 */
#ifndef MRNET_STREAM_H
#define MRNET_STREAM_H

#include <cstdarg>

#include "mrnet/Communicator.h"
#include "mrnet/FilterIds.h"
#include "mrnet/Packet.h"
#include "mrnet/Types.h"

namespace MRN {

typedef enum {
    FILTER_DOWNSTREAM_TRANS,
    FILTER_UPSTREAM_TRANS,
    FILTER_UPSTREAM_SYNC
} FilterType;

#define INVALID_STREAM_ID ((unsigned int)-1)

extern const unsigned int CTL_STRM_ID;
extern const unsigned int TOPOL_STRM_ID;
extern const unsigned int PORT_STRM_ID;
extern const unsigned int INTERNAL_STRM_BASE_ID;
extern const unsigned int USER_STRM_BASE_ID;

class Engine;
struct StreamContents;

class Stream {
  public:
    virtual ~Stream();

    /* 0, or -1: the stream is closed, the format is none, the values do not fit it. */
    int send(int tag, const char* format, ...);
    int send(const char* format, va_list values, int tag);
    int send(int tag, const void** values, const char* format);
    int send(PacketPtr& packet);
    int flush() const;
    /* 1 for a packet, 0 for none, -1 when none can come any more or a filter refused it. */
    int recv(int* tag, PacketPtr& packet, bool blocking = true);

    const std::set<Rank>& get_EndPoints() const;
    /* Adds the children of this process that lead to end-points. */
    void get_ChildRanks(std::set<Rank>& ranks) const;
    unsigned int get_Id() const;
    unsigned int size() const;
    bool has_Data();
    bool is_Closed() const;
    bool is_ShutDown() const;

    /* A descriptor that is readable when packets have come since it was cleared. */
    int get_DataNotificationFd();
    void clear_DataNotificationFd();
    void close_DataNotificationFd();

    int set_FilterParameters(FilterType type, const char* format, ...) const;
    int set_FilterParameters(const char* format, va_list values, FilterType type) const;

    bool enable_PerformanceData(perfdata_metric_t metric, perfdata_context_t context);
    bool disable_PerformanceData(perfdata_metric_t metric, perfdata_context_t context);
    bool collect_PerformanceData(rank_perfdata_map& by_rank, perfdata_metric_t metric,
                                 perfdata_context_t context,
                                 int aggregation = TFILTER_ARRAY_CONCAT);
    void print_PerformanceData(perfdata_metric_t metric, perfdata_context_t context);

    /* What the layer itself needs; no tool makes or holds contents. */
    Stream(Engine& engine, StreamContents* contents);
    StreamContents& contents() const;

  private:
    Stream(const Stream&);
    Stream& operator=(const Stream&);
    int send_parameters(Packet& packet, FilterType type) const;

    Engine& engine_;
    StreamContents* contents_;
};

}  // namespace MRN

/* Tools take a stream's network from here; it needs the class above. */
#include "mrnet/Network.h"

#endif
