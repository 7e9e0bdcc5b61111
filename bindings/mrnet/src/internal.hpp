/*
 * A communication process's side of a network: the library does all of it.
 */
#ifndef MRNET_INTERNAL_HPP
#define MRNET_INTERNAL_HPP

#include "engine.hpp"

namespace MRN {

class Internal : public Engine {
  public:
    Internal(Network& network, Rank rank) : Engine(network, rank) {}

    bool has_data(StreamContents&) override { return false; }
    int open(StreamContents&) override { return -1; }
    Stream* direct(Rank) override { return NULL; }
    bool is_front_end() const override { return false; }
    node_type_t kind() const override { return CP_NODE; }
    void wait_for_end() override;

  protected:
    int bring() override { return 0; }
    int turn(int) override { return 0; }
    int idle_milliseconds() override { return -1; }
    int descriptor() override { return -1; }
    int write() override { return -1; }
    int take(Stream*, PacketPtr&, Stream**, int) override { return -1; }
    int put(StreamContents&, PacketContents&, const mrn_pointers&) override { return -1; }
    void close_handle(Stream&) override {}
    void collect() override {}
};

}  // namespace MRN

#endif
