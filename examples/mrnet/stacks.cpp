/*
 * Where is each process? `stacks TOPOLOGY-FILE PID...` draws the stacks of many processes as one tree.
 *
 * Each back-end looks at one process, thread by thread, as the kernel sees it (/proc/PID/stack, which
 * root may read; for others the name of the call in which the thread waits). Equal stacks are folded
 * on their way up; the front-end draws those that begin alike as one branch.
 */
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "fold.hpp"

using namespace MRN;

enum { STACKS = FirstApplicationTag, END };

/* A thread's frames, the outermost first, one a line. */
static std::string stack_of(const std::filesystem::path& thread)
{
    std::string name, line, frames;
    std::ifstream(thread / "comm") >> name;
    std::ifstream stack(thread / "stack");
    /* One frame a line, the innermost first: "[<0>] do_epoll_wait+0x60/0x1b0". */
    while (std::getline(stack, line) && line.find(' ') != std::string::npos) {
        line = line.substr(line.find(' ') + 1);
        frames = "\n" + line.substr(0, line.find('+')) + frames;
    }
    if (frames.empty()) {
        std::string waits_in;
        std::ifstream(thread / "wchan") >> waits_in;
        frames = "\n" + (waits_in.empty() || waits_in == "0" ? "(running)" : waits_in);
    }
    return name + frames;
}

static int back_end(int argc, char** argv)
{
    Network* network = Network::CreateNetworkBE(argc, argv);
    Rank rank = network->get_LocalRank();
    PacketPtr packet;
    Stream* stream;
    int tag;
    while (network->recv(&tag, packet, &stream) == 1 && tag == STACKS) {
        Fold stacks;
        std::error_code gone;
        std::string folder = std::string("/proc/") + argv[2 + rank] + "/task";
        for (const auto& thread : std::filesystem::directory_iterator(folder, gone))
            stacks[stack_of(thread.path())].insert(rank);
        if (stacks.empty())
            stacks["(no such process)"].insert(rank);
        if (Columns(stacks).send(stream, STACKS) == -1)
            break;
    }
    network->waitfor_ShutDown();
    delete network;
    return 0;
}

/* Frames that several stacks begin with are one branch, with the ranks of all. */
static void draw(const Fold& stacks)
{
    std::map<std::vector<std::string>, std::set<Rank>> branches;
    for (const auto& [stack, ranks] : stacks) {
        std::vector<std::string> path;
        for (size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
            end = stack.find('\n', at);
            path.push_back(stack.substr(at, end == std::string::npos ? end : end - at));
            branches[path].insert(ranks.begin(), ranks.end());
        }
    }
    for (const auto& [path, ranks] : branches)
        printf("%*s%s: %s\n", int(2 * (path.size() - 1)), "", path.back().c_str(),
               words_of(ranks).c_str());
}

static int front_end(const char* topology, const char* own, char** pids, unsigned int count)
{
    std::vector<const char*> arguments = {"back-end"};
    arguments.insert(arguments.end(), pids, pids + count);
    arguments.push_back(NULL);
    Network* network = Network::CreateNetworkFE(topology, own, arguments.data());
    if (network->has_Error()) {
        network->perror("stacks");
        return 1;
    }
    Communicator* everyone = network->get_BroadcastCommunicator();
    int filter = network->load_FilterFunc(filter_library().c_str(), "fold");
    Stream* stream = filter == -1 ? NULL : network->new_Stream(everyone, filter, SFILTER_WAITFORALL);
    PacketPtr packet;
    Fold stacks;
    int tag, failed = 1;
    if (everyone->size() != count) {
        fprintf(stderr, "stacks: %u back-ends cannot look at %u processes\n", everyone->size(), count);
    } else if (stream != NULL && stream->send(STACKS, "") == 0 && stream->flush() == 0 &&
               stream->recv(&tag, packet) == 1 && unfold(packet, stacks)) {
        draw(stacks);
        failed = 0;
    }
    if (stream != NULL && stream->send(END, "") == 0)
        stream->flush();
    delete stream;
    delete network;
    return failed;
}

int main(int argc, char** argv)
{
    if (argc > 2 && strcmp(argv[1], "back-end") == 0)
        return back_end(argc, argv);
    if (argc > 2)
        return front_end(argv[1], argv[0], argv + 2, unsigned(argc) - 2);
    fprintf(stderr, "stacks: usage: stacks TOPOLOGY-FILE PID..., with one PID for each back-end\n");
    return 1;
}
