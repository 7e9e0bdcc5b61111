/*
 * What do the logs of all hosts say? `tail TOPOLOGY-FILE FILE [SECONDS]` follows a file on every
 * back-end and prints each line once, with the ranks that wrote it.
 *
 * Ten times a second the front-end asks for what is new; equal lines of one turn are folded on their
 * way up. `{rank}` in FILE stands for the back-end's rank. It follows until it is interrupted, or for
 * SECONDS.
 */
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>

#include "fold.hpp"

using namespace MRN;

enum { LINES = FirstApplicationTag, END };

static const std::chrono::milliseconds TURN(100);

/* Adds the complete lines behind `read`, and moves it on; a file that became shorter begins anew. */
static void new_lines(const std::string& path, std::streamoff& read, Rank rank, Fold& lines)
{
    std::ifstream file(path, std::ios::ate);
    if (file.tellg() < read)
        read = 0;
    file.seekg(read);
    for (std::string line; std::getline(file, line) && !file.eof(); read = file.tellg())
        lines[line].insert(rank);
}

static int back_end(int argc, char** argv)
{
    Network* network = Network::CreateNetworkBE(argc, argv);
    Rank rank = network->get_LocalRank();
    std::string path = for_rank(argv[2], rank);
    std::streamoff read = 0;
    PacketPtr packet;
    Stream* stream;
    int tag;
    while (network->recv(&tag, packet, &stream) == 1 && tag == LINES) {
        Fold lines;
        new_lines(path, read, rank, lines);
        if (Columns(lines).send(stream, LINES) == -1)
            break;
    }
    network->waitfor_ShutDown();
    delete network;
    return 0;
}

static bool print_turn(Stream* stream)
{
    PacketPtr packet;
    Fold lines;
    int tag;
    if (stream->send(LINES, "") == -1 || stream->flush() == -1 || stream->recv(&tag, packet) != 1 ||
        !unfold(packet, lines))
        return false;
    for (const auto& [line, ranks] : lines)
        printf("%s: %s\n", words_of(ranks).c_str(), line.c_str());
    fflush(stdout);
    return true;
}

static int front_end(const char* topology, const char* own, const char* file, long turns)
{
    const char* arguments[] = {"back-end", file, NULL};
    Network* network = Network::CreateNetworkFE(topology, own, arguments);
    if (network->has_Error()) {
        network->perror("tail");
        return 1;
    }
    int filter = network->load_FilterFunc(filter_library().c_str(), "fold");
    Communicator* everyone = network->get_BroadcastCommunicator();
    Stream* stream = filter == -1 ? NULL : network->new_Stream(everyone, filter, SFILTER_WAITFORALL);
    bool goes_on = stream != NULL;
    for (long turn = 0; goes_on && (turns < 0 || turn < turns); turn++) {
        goes_on = print_turn(stream);
        std::this_thread::sleep_for(TURN);
    }
    if (stream != NULL && stream->send(END, "") == 0)
        stream->flush();
    delete stream;
    delete network;
    return !goes_on;
}

int main(int argc, char** argv)
{
    if (argc > 2 && strcmp(argv[1], "back-end") == 0)
        return back_end(argc, argv);
    if (argc == 3 || argc == 4)
        return front_end(argv[1], argv[0], argv[2], argc == 4 ? atol(argv[3]) * 10 : -1);
    fprintf(stderr, "tail: usage: tail TOPOLOGY-FILE FILE [SECONDS]\n");
    return 1;
}
