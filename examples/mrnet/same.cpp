/*
 * Which hosts differ, and in what? `same TOPOLOGY-FILE FILE` compares a file of all back-ends.
 *
 * Each back-end sends a checksum of its file (or why it cannot read it); equal ones are folded on their
 * way up; the front-end fetches the whole file from one representative of each class. `{rank}` in FILE
 * stands for the back-end's rank.
 */
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "fold.hpp"

using namespace MRN;

enum { CHECKSUM = FirstApplicationTag, CONTENT, END };

/* A checksum with "=" before it, or why there is none. */
static std::string word_of(const std::string& content, const std::string& reason)
{
    uint64_t checksum = 14695981039346656037ULL; /* FNV-1a */
    for (unsigned char byte : content)
        checksum = (checksum ^ byte) * 1099511628211ULL;
    return reason.empty() ? "=" + std::to_string(checksum) : reason;
}

static int back_end(int argc, char** argv)
{
    Network* network = Network::CreateNetworkBE(argc, argv);
    Rank rank = network->get_LocalRank();
    std::string path = for_rank(argv[2], rank);
    PacketPtr packet;
    Stream* stream;
    int tag, sent = 0;
    while (sent != -1 && network->recv(&tag, packet, &stream) == 1 && tag != END) {
        std::ifstream file(path, std::ios::binary);
        std::string reason = file ? "" : strerror(errno);
        std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        if (tag == CHECKSUM) {
            Fold fold;
            fold[word_of(content, reason)].insert(rank);
            sent = Columns(fold).send(stream, CHECKSUM);
        } else {
            sent = stream->send(CONTENT, "%ac", content.data(), uint32_t(content.size()));
            stream->flush();
        }
    }
    network->waitfor_ShutDown();
    delete network;
    return 0;
}

static bool print_class(Network* network, const std::string& word, const std::set<Rank>& ranks,
                        bool is_only)
{
    printf("%zu back-ends (%s): ", ranks.size(), words_of(ranks).c_str());
    if (word[0] != '=')
        return printf("%s\n", word.c_str()) > 0;
    Communicator* one = network->new_Communicator();
    one->add_EndPoint(*ranks.begin());
    Stream* stream = network->new_Stream(one, TFILTER_NULL, SFILTER_DONTWAIT);
    PacketPtr packet;
    char* bytes = NULL;
    uint32_t length = 0;
    int tag;
    bool is_there = stream != NULL && stream->send(CONTENT, "") == 0 && stream->flush() == 0 &&
                    stream->recv(&tag, packet) == 1 && packet->unpack("%ac", &bytes, &length) == 0;
    if (is_there) {
        printf("%u bytes, %u lines\n", length, unsigned(std::count(bytes, bytes + length, '\n')));
        if (!is_only)
            fwrite(bytes, 1, length, stdout);
    }
    free(bytes);
    delete stream;
    return is_there;
}

static bool ask(Network* network, Stream* stream)
{
    PacketPtr packet;
    Fold fold;
    int tag;
    if (stream == NULL || stream->send(CHECKSUM, "") == -1 || stream->flush() == -1 ||
        stream->recv(&tag, packet) != 1 || !unfold(packet, fold))
        return false;
    /* The largest class first; of equally large ones, that with the smallest rank. */
    std::vector<std::pair<std::string, std::set<Rank>>> classes(fold.begin(), fold.end());
    std::sort(classes.begin(), classes.end(), [](const auto& a, const auto& b) {
        return a.second.size() != b.second.size() ? a.second.size() > b.second.size()
                                                  : *a.second.begin() < *b.second.begin();
    });
    for (const auto& [word, ranks] : classes)
        if (!print_class(network, word, ranks, classes.size() == 1))
            return false;
    return true;
}

int main(int argc, char** argv)
{
    if (argc > 2 && strcmp(argv[1], "back-end") == 0)
        return back_end(argc, argv);
    if (argc != 3) {
        fprintf(stderr, "same: usage: same TOPOLOGY-FILE FILE\n");
        return 1;
    }
    const char* arguments[] = {"back-end", argv[2], NULL};
    Network* network = Network::CreateNetworkFE(argv[1], argv[0], arguments);
    if (network->has_Error()) {
        network->perror("same");
        return 1;
    }
    int filter = network->load_FilterFunc(filter_library().c_str(), "fold");
    Communicator* everyone = network->get_BroadcastCommunicator();
    Stream* stream = filter == -1 ? NULL : network->new_Stream(everyone, filter, SFILTER_WAITFORALL);
    bool is_done = ask(network, stream);
    if (stream != NULL && stream->send(END, "") == 0)
        stream->flush();
    delete stream;
    delete network;
    return !is_done;
}
