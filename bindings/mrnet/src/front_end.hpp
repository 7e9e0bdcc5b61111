/*
 * The front-end's side of a network.
 */
#ifndef MRNET_FRONT_END_HPP
#define MRNET_FRONT_END_HPP

#include "engine.hpp"

namespace MRN {

class FrontEnd : public Engine {
  public:
    FrontEnd(Network& network, Rank rank);
    ~FrontEnd();

    /* Starts the tree; sets the network's error if that fails. */
    bool start(const std::string& topology_text, const char* program, const char** arguments,
               const Settings& settings);
    void add_end_point(Rank rank);
    /* One row of ROW_COLUMNS numbers for each process, of a stream or of all. */
    bool collect_rows(unsigned int stream, std::map<Rank, std::vector<double>>& rows);

    bool has_data(StreamContents& stream) override;
    int open(StreamContents& stream) override;
    Stream* direct(Rank rank) override;
    bool set_recovering(bool enable) override;
    bool is_front_end() const override { return true; }
    node_type_t kind() const override { return FE_NODE; }
    Rank shown(Rank real) const override;
    Rank real(Rank shown) const override;

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
    /* A stream over which packets go to single back-ends, and those behind it. */
    struct Line {
        sapwood_stream_t* handle;
        sapwood_communicator_t* members;
    };

    int tell_filters(StreamContents& stream);
    bool read_topology(const std::string& text, uint32_t attach_per_leaf);
    void publish_attach_points();
    Line* open_line(const std::vector<uint32_t>& ranks, bool says_hello);
    void take_direct(Line& line);
    void greet(const std::string& ranks);
    void welcome(Rank real, const sapwood_packet_t* packet);
    void tell(const sapwood_event_t& event);
    void lose(Rank rank);
    int take_of(Stream& stream, PacketPtr& packet, int milliseconds);
    int take_queued(Stream* only, PacketPtr& packet, Stream** stream);
    bool is_there(const StreamContents& stream) const;
    int fail(const sapwood_error_t& error);

    sapwood_network_t* network_;
    bool is_attaching_;
    uint32_t last_answering_;
    std::map<Rank, Rank> shown_by_real_, real_by_shown_;
    std::map<Rank, size_t> line_of_;
    /* Back-ends that are told of as lost, and have not come back. */
    std::set<Rank> gone_;
    std::vector<Line> lines_;
    std::deque<std::pair<Stream*, PacketPtr>> direct_arrivals_;
    std::vector<std::string> attach_files_;
};

/* "0-3,7" as ranks. */
std::vector<uint32_t> ranks_of(const std::string& text);

}  // namespace MRN

#endif
