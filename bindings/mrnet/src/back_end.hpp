/*
 * A back-end's side of a network.
 */
#ifndef MRNET_BACK_END_HPP
#define MRNET_BACK_END_HPP

#include "engine.hpp"

namespace MRN {

class BackEnd : public Engine {
  public:
    BackEnd(Network& network, Rank rank, Rank parent, Port parent_port);
    ~BackEnd();

    /* Joins the tree that has started this process, or the one whose parent has this port. */
    bool attach();

    bool has_data(StreamContents& stream) override;
    int open(StreamContents&) override { return 0; }
    Stream* direct(Rank rank) override;
    bool is_front_end() const override { return false; }
    node_type_t kind() const override { return BE_NODE; }

  protected:
    int bring() override;
    int turn(int milliseconds) override;
    int idle_milliseconds() override;
    int descriptor() override;
    int write() override;
    int take(Stream* only, PacketPtr& packet, Stream** stream, int milliseconds) override;
    int put(StreamContents& stream, PacketContents& packet, const mrn_pointers& values) override;
    void close_handle(Stream& stream) override;
    void collect() override;

  private:
    void collect_events();
    void sort(sapwood_packet_t* packet);
    void say_hello(uint32_t stream, const sapwood_packet_t* packet);
    void tell_usage(uint32_t stream, const sapwood_packet_t* packet);
    Stream* stream_of(uint32_t id);
    int take_queued(Stream* only, PacketPtr& packet, Stream** stream);
    void read_topology();
    int fail(const sapwood_error_t& error);

    sapwood_back_end_t* back_end_;
    Rank parent_;
    Port parent_port_;
    Rank front_end_;
    bool is_started_;
    std::deque<std::pair<Stream*, PacketPtr>> arrivals_;
};

}  // namespace MRN

#endif
