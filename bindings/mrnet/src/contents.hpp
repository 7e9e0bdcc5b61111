/*
 * What packets and streams hold, behind the classes that tools see.
 */
#ifndef MRNET_CONTENTS_HPP
#define MRNET_CONTENTS_HPP

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "mrnet/Event.h"
#include "mrnet/Packet.h"
#include "mrnet/Stream.h"
#include "values.h"

namespace MRN {

struct PacketContents {
    PacketContents();
    ~PacketContents();

    /* Has the values at hand, of a packet that came over the network, too. */
    bool load(sapwood_error_t* error);

    unsigned int stream_id;
    int tag;
    Rank source;
    Rank inlet;
    std::string format;
    mrn_values values;
    bool has_values;
    bool destroys;
    /* Whether a filter of Sapwood's gives more values, or other numbers, than MRNet's. */
    bool is_lenient;
    /* Whether the values are those of `concatenate`, of which MRNet's has only the first. */
    bool is_concatenation;
    std::vector<Rank> destinations;
    std::vector<DataElement> elements;
    /* What has come; it owns `lent`. */
    sapwood_packet_t* packet;
    sapwood_answer_t* answer;
    const sapwood_packet_t* lent;
};

struct StreamContents {
    StreamContents();
    ~StreamContents();

    unsigned int shown_id() const;
    uint64_t arrived() const { return packets_received; }

    uint32_t id;
    std::set<Rank> ranks;
    bool is_closed;
    /* Whether it leads to one back-end, over a stream that all such share. */
    bool is_direct;
    Rank peer;
    bool is_lenient;
    std::unique_ptr<EventPipe> pipe;
    uint64_t announced;
    uint64_t packets_sent, bytes_sent, packets_received, bytes_received;
    std::set<std::pair<int, int>> measured;

    /* At the front-end. */
    sapwood_stream_t* handle;
    sapwood_communicator_t* members;
    bool is_opened;
    /* `sync` is empty where a filter that is built in decides when a wave goes on, which is `wave`. */
    std::string up, sync, down;
    /* The same by the numbers that the tool has assigned. */
    std::string assigned_up, assigned_sync, assigned_down;
    /* Whether filters of the tool's are among them, and what they are told. */
    bool has_loaded;
    std::string text;
    int wave;
    uint32_t wave_milliseconds;
};

/* The layer's name of a filter; empty for one that is not known. */
std::string filter_name(int id, const std::vector<std::string>& loaded);

/* Text of an error of the library's with the code that says the same here. */
ErrorCode code_of(const sapwood_error_t& error);
ErrorCode code_of_filter(const char* text);

/* Writes a line for people if the level of output asks for it. */
void say(int level, const char* format, ...) __attribute__((format(printf, 2, 3)));

/* The settings of a network: its attributes, then the environment. */
class Settings {
  public:
    explicit Settings(const std::map<std::string, std::string>* attributes);
    std::string text(const char* name, const char* other_name = NULL) const;
    /* Its words, between blanks, with quotes and backslashes as a shell reads them. */
    std::vector<std::string> words(const char* name) const;
    int number(const char* name, int otherwise) const;

  private:
    std::map<std::string, std::string> attributes_;
};

/* The folder where attached back-ends find their network; empty when there is none. */
std::string runtime_folder();
std::string attach_file(Port port);
std::string local_host();

/* The variable that tells back-ends of the tree. */
extern const char TOPOLOGY_VARIABLE[];

}  // namespace MRN

#endif
