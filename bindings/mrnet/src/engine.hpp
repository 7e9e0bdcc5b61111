/*
 * What a network of either side has in common: one handle of sapwood.h, the lock that lends it from
 * thread to thread, the thread that serves it while the tool does something else, and what has been
 * told of streams, events and the topology.
 *
 * A thread that waits for packets either waits inside the library (while no other thread,
 * descriptor or callback needs the network), or becomes the one thread that waits for the library's
 * descriptor while the others wait for it.
 */
#ifndef MRNET_ENGINE_HPP
#define MRNET_ENGINE_HPP

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "contents.hpp"
#include "mrnet/Event.h"
#include "mrnet/Network.h"
#include "mrnet/NetworkTopology.h"

namespace MRN {

/* Tags of the layer's own packets, the last that there are: to the tree they are an application's. A
   tool's begin at FirstApplicationTag and end before these. */
enum { TAG_HELLO = INT32_MAX - 4, TAG_USAGE, TAG_PARAMETERS, TAG_FILTERS_ARE, TAGS_OWN = TAG_HELLO };

/* What a back-end tells of itself: the columns of sapwood_usage, then its traffic on a stream. */
enum { USAGE_COLUMNS = 5, TRAFFIC_COLUMNS = 4, ROW_COLUMNS = USAGE_COLUMNS + TRAFFIC_COLUMNS };

class Engine {
  public:
    /* Holds the lock and has the library know this thread. */
    class Hold {
      public:
        explicit Hold(Engine& engine, bool is_service = false);
        std::unique_lock<std::mutex> lock;
    };

    Engine(Network& network, Rank rank);
    virtual ~Engine();

    /* 1 for a packet, 0 for none, -1; of one stream, or of any for NULL. */
    int recv(Stream* only, int* tag, PacketPtr& packet, Stream** stream, bool is_blocking);
    int send(Stream& stream, PacketContents& packet);
    int flush();
    /* Lets the library work without waiting. */
    void refresh();
    virtual void wait_for_end();
    bool has_ended();
    void deliver(Event* event);
    void close_stream(Stream& stream);
    Stream* stream(unsigned int id);

    /* Each of these is called with the lock held. */
    virtual bool has_data(StreamContents& stream) = 0;
    virtual int open(StreamContents& stream) = 0;
    virtual Stream* direct(Rank rank) = 0;
    /* Whether the network repairs itself from now on as asked. */
    virtual bool set_recovering(bool enable) { return is_recovering == enable; }
    virtual bool is_front_end() const = 0;
    virtual node_type_t kind() const = 0;
    /* Ranks as tools know them, of the library's; and back. */
    virtual Rank shown(Rank rank) const { return rank; }
    virtual Rank real(Rank rank) const { return rank; }
    void notice();
    int keep(Stream& stream);
    std::string filter_text(const std::set<Rank>& members);

    Network& network;
    NetworkTopology topology;
    EventMgr events;
    Rank rank;
    std::string host;
    Port port;
    std::mutex mutex;
    /* By the library's number. */
    std::map<uint32_t, Stream*> streams;
    std::map<Rank, Stream*> direct_streams;
    std::vector<Communicator*> communicators;
    std::map<Rank, CommunicationNode*> end_points;
    std::vector<std::string> loaded_filters;
    std::string filter_lines;
    bool ended;
    bool is_recovering;
    /* Streams whose data descriptor is in use. */
    int watched;

  protected:
    virtual int bring() = 0;
    virtual int turn(int milliseconds) = 0;
    virtual int idle_milliseconds() = 0;
    virtual int descriptor() = 0;
    virtual int write() = 0;
    /* Takes a packet, and sorts other arrivals; may wait inside the library for this long. */
    virtual int take(Stream* only, PacketPtr& packet, Stream** stream, int milliseconds) = 0;
    virtual int put(StreamContents& stream, PacketContents& packet, const mrn_pointers& values) = 0;
    /* Drops what a stream has here, including packets that were not taken. */
    virtual void close_handle(Stream& stream) = 0;
    /* Sorts what the last turn brought. */
    virtual void collect() = 0;

    /* Starts the service thread. It does `begin` first: processes of the tree are bound to the
       thread that starts them, and this one lives as long as the network. */
    void start_service(const std::function<void()>& begin);
    /* Has the thread leave the network alone; it ends with the engine. */
    void stop_service();
    void delete_streams();
    void announce(Stream& stream, uint64_t arrived);

  private:
    friend class Hold;
    void bring_here();
    bool is_alone() const;
    void rest(Hold& hold, bool is_service);
    void serve();
    void run_callbacks(std::unique_lock<std::mutex>& lock);

    struct Due {
        evt_cb_info info;
        Event event;
    };

    std::condition_variable changed_;
    std::mutex sleep_mutex_;
    std::condition_variable sleep_;
    std::thread service_;
    std::deque<Due> due_;
    EventPipe wake_;
    std::thread::id first_thread_, last_thread_;
    std::atomic<bool> has_others_;
    std::atomic<bool> is_closing_;
    bool has_left_, may_end_;
    std::atomic<uint64_t> uses_;
    int waiting_;
    bool is_polling_;
    bool is_service_polling_;
};

}  // namespace MRN

#endif
