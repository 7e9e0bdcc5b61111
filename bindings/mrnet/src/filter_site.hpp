/*
 * A process as its filters see it: a network with the process's rank, its place in the tree and its streams, over
 * which nothing can be sent. Filters that ask TopologyLocalInfo for their network get this one, in every process
 * of the tree, the front-end's and back-ends included.
 *
 * The tree is that of the moment at which the last stream was opened, and is corrected by packets: where one comes
 * from a process that was further below, those between are gone.
 */
#ifndef MRNET_FILTER_SITE_HPP
#define MRNET_FILTER_SITE_HPP

#include <memory>

#include "engine.hpp"

namespace MRN {

class FilterSite : public Engine {
  public:
    /* The site of the process of that rank (the library's), in the network of that mark, with the
       stream of that number, as `tree` says. It lives as long as a reference to it. */
    static std::shared_ptr<FilterSite> enter(const std::string& mark, const std::string& tree, Rank real_rank,
                                             uint32_t stream);
    ~FilterSite();

    /* The stream is not used any more by one of those that have entered. */
    void leave(uint32_t stream);
    /* A packet has come straight from the process of that rank (the library's). */
    void note_child(Rank real_rank);
    TopologyLocalInfo place();

    Rank shown(Rank real_rank) const override;
    node_type_t kind() const override { return kind_; }
    bool has_data(StreamContents&) override { return false; }
    int open(StreamContents&) override { return -1; }
    Stream* direct(Rank) override { return NULL; }
    bool is_front_end() const override { return false; }

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

  private:
    FilterSite(Network& network, Rank real_rank);
    /* Takes the tree as it is now; gives the members of the stream that is told with it. */
    std::set<Rank> read(const std::string& tree);
    void add_stream(uint32_t stream, const std::set<Rank>& members);

    Rank real_rank_;
    node_type_t kind_;
    std::map<Rank, Rank> shown_;
    std::map<uint32_t, int> uses_;
};

/* What a front-end tells of its tree and the members of a stream: a line for each process with its rank, the
   library's, its parent's, what it is, and its host. */
std::string told_tree(Engine& engine, const std::set<Rank>& members);

}  // namespace MRN

#endif
