/*
 * Which of all hosts have the most? `top TOPOLOGY-FILE K COMMAND` runs a command on every back-end and
 * prints the K largest of the numbers with which its lines begin.
 *
 * The tree finds the numbers and the ranks that have them; only those back-ends are then asked for the lines.
 * `{rank}` in COMMAND stands for the back-end's rank.
 */
#include <cstdio>
#include <cstring>

#include "fold.hpp"

using namespace MRN;

enum { NUMBERS = FirstApplicationTag, LINE, END };

/* The lines of a command's output that begin with a number. */
struct Lines {
    std::vector<double> numbers;
    std::vector<std::string> texts;

    explicit Lines(const std::string& command)
    {
        FILE* output = popen(command.c_str(), "r");
        char* line = NULL;
        size_t size = 0;
        while (output != NULL && getline(&line, &size, output) > 0) {
            char* end;
            double number = strtod(line, &end);
            line[strcspn(line, "\n")] = '\0';
            if (end == line)
                continue;
            numbers.push_back(number);
            texts.push_back(line + strspn(line, " "));
        }
        free(line);
        if (output != NULL)
            pclose(output);
    }
};

static int answer(Network* network, Stream* stream, int tag, PacketPtr& packet, Lines& lines,
                  const std::string& command)
{
    double number;
    int k;
    if (tag == NUMBERS && packet->unpack("%d", &k) == 0) {
        lines = Lines(command);
        std::vector<uint32_t> ranks(lines.numbers.size(), network->get_LocalRank());
        return stream->send(NUMBERS, "%d %alf %aud", k, lines.numbers.data(),
                            uint32_t(lines.numbers.size()), ranks.data(), uint32_t(ranks.size()));
    }
    if (packet->unpack("%lf", &number) == -1)
        return -1;
    for (size_t i = 0; i < lines.numbers.size(); i++)
        if (lines.numbers[i] == number)
            return stream->send(LINE, "%s", lines.texts[i].c_str());
    return stream->send(LINE, "%s", "");
}

static int back_end(int argc, char** argv)
{
    Network* network = Network::CreateNetworkBE(argc, argv);
    std::string command = for_rank(argv[2], network->get_LocalRank());
    Lines lines("true");
    PacketPtr packet;
    Stream* stream;
    int tag;
    while (network->recv(&tag, packet, &stream) == 1 && tag != END)
        if (answer(network, stream, tag, packet, lines, command) == -1 || stream->flush() == -1)
            break;
    network->waitfor_ShutDown();
    delete network;
    return 0;
}

/* Asks one of those that have a number for the line that begins with it. */
static bool print_entry(Network* network, double number, const std::set<Rank>& ranks)
{
    Communicator* holder = network->new_Communicator();
    holder->add_EndPoint(*ranks.begin());
    Stream* stream = network->new_Stream(holder, TFILTER_NULL, SFILTER_DONTWAIT);
    PacketPtr packet;
    char* line = NULL;
    int tag;
    bool is_there = stream != NULL && stream->send(LINE, "%lf", number) == 0 &&
                    stream->flush() == 0 && stream->recv(&tag, packet) == 1 &&
                    packet->unpack("%s", &line) == 0;
    if (is_there)
        printf("%s: %s\n", words_of(ranks).c_str(), line);
    free(line);
    delete stream;
    return is_there;
}

static bool ask(Network* network, Stream* stream, int k)
{
    PacketPtr packet;
    double* numbers = NULL;
    uint32_t *ranks = NULL, count = 0, rank_count = 0;
    int tag, wanted;
    bool goes_on = stream != NULL && stream->send(NUMBERS, "%d", k) == 0 && stream->flush() == 0 &&
                   stream->recv(&tag, packet) == 1 &&
                   packet->unpack("%d %alf %aud", &wanted, &numbers, &count, &ranks, &rank_count) == 0;
    for (uint32_t i = 0; goes_on && i < count;) {
        double number = numbers[i];
        std::set<Rank> holders;
        for (; i < count && numbers[i] == number; i++)
            holders.insert(ranks[i]);
        goes_on = print_entry(network, number, holders);
    }
    free(numbers), free(ranks);
    return goes_on;
}

int main(int argc, char** argv)
{
    if (argc > 2 && strcmp(argv[1], "back-end") == 0)
        return back_end(argc, argv);
    if (argc != 4) {
        fprintf(stderr, "top: usage: top TOPOLOGY-FILE K COMMAND\n");
        return 1;
    }
    const char* arguments[] = {"back-end", argv[3], NULL};
    Network* network = Network::CreateNetworkFE(argv[1], argv[0], arguments);
    if (network->has_Error()) {
        network->perror("top");
        return 1;
    }
    int filter = network->load_FilterFunc(filter_library().c_str(), "largest");
    Communicator* everyone = network->get_BroadcastCommunicator();
    Stream* stream = filter == -1 ? NULL : network->new_Stream(everyone, filter, SFILTER_WAITFORALL);
    bool is_done = ask(network, stream, atoi(argv[2]));
    if (stream != NULL && stream->send(END, "") == 0)
        stream->flush();
    delete stream;
    delete network;
    return !is_done;
}
