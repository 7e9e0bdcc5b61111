/*
 * A stream's filters run in every process of the tree, full back-ends included: filters that count their runs
 * say so, upward and downward, the same everywhere or assigned by rank.
 *
 *     every_process TOPOLOGY BACK-END LIBRARY full|light
 */
#include <cstring>

#include "answer.hpp"

using namespace MRN;

namespace {

/* The tree, and whether its back-ends run filters. */
struct Shape {
    Network* net;
    Communicator* everyone;
    bool is_full;
    int back_ends, inner, levels;
    /* How often a filter runs for one wave, upward; and downward, on the way to one back-end. */
    int up_runs, down_runs;
};

Shape look_at(Network* net, bool is_full)
{
    unsigned int nodes, depth, least, most;
    double average, deviation;
    net->get_NetworkTopology()->get_TreeStatistics(nodes, depth, least, most, average, deviation);
    int back_ends = int(net->get_NetworkTopology()->num_BackEndNodes());
    int inner = int(net->get_NetworkTopology()->num_InternalNodes());
    return {net, net->get_BroadcastCommunicator(), is_full, back_ends, inner, int(depth),
            inner + 1 + (is_full ? back_ends : 0), int(depth) + (is_full ? 1 : 0)};
}

/* "id => rank ; ..." for all back-ends, and `other` for the rest. */
std::string at_back_ends(const Shape& tree, int id, int other)
{
    std::string text;
    for (Rank rank : std::set<Rank>{0, Rank(tree.back_ends) - 1})
        text += std::to_string(id) + " => " + std::to_string(rank) + " ; ";
    for (int rank = 1; rank < tree.back_ends - 1; rank++)
        text += std::to_string(id) + " => " + std::to_string(rank) + " ; ";
    return text + std::to_string(other) + " => * ;";
}

int receive(Stream* stream, int wanted)
{
    PacketPtr packet;
    int number = 0;
    DEMAND(stream->recv(NULL, packet) == 1 && packet->unpack("%d", &number) == 0);
    if (number != wanted)
        fprintf(stderr, "%d, not %d\n", number, wanted);
    DEMAND(number == wanted);
    return 0;
}

int upward(const Shape& tree, int add_one, int add_runs)
{
    Stream* stream = tree.net->new_Stream(tree.everyone, add_one);
    DEMAND(stream != NULL);
    for (int wave = 0; wave < 5; wave++)
        DEMAND(stream->send(TAG_SUM, "%d", wave) == 0 && receive(stream, tree.back_ends * wave + tree.up_runs) == 0);
    delete stream;
    /* The state of an instance lasts, in back-ends too. */
    stream = tree.net->new_Stream(tree.everyone, add_runs);
    DEMAND(stream != NULL);
    for (int wave = 1; wave <= 5; wave++)
        DEMAND(stream->send(TAG_SUM, "%d", 0) == 0 && receive(stream, tree.up_runs * wave) == 0);
    delete stream;
    return 0;
}

int downward(const Shape& tree, int one_more, int add_one)
{
    Stream* stream = tree.net->new_Stream(tree.everyone, TFILTER_SUM, SFILTER_WAITFORALL, one_more);
    DEMAND(stream != NULL);
    for (int number = 1; number < 4; number++)
        DEMAND(stream->send(TAG_SUM, "%d", number) == 0 &&
               receive(stream, tree.back_ends * (number + tree.down_runs)) == 0);
    delete stream;
    stream = tree.net->new_Stream(tree.everyone, add_one, SFILTER_WAITFORALL, one_more);
    DEMAND(stream != NULL && stream->send(TAG_SUM, "%d", 1) == 0);
    DEMAND(receive(stream, tree.back_ends * (1 + tree.down_runs) + tree.up_runs) == 0);
    delete stream;
    /* In back-ends alone, with a parameter that passes it by. */
    stream = tree.net->new_Stream(tree.everyone, std::to_string(TFILTER_SUM) + " => * ;", "51 => * ;",
                                  at_back_ends(tree, one_more, TFILTER_NULL));
    DEMAND(stream != NULL && stream->send(TAG_SUM, "%d", 4) == 0);
    DEMAND(receive(stream, tree.back_ends * (tree.is_full ? 5 : 4)) == 0);
    DEMAND(stream->set_FilterParameters(FILTER_DOWNSTREAM_TRANS, "%d", 10) == 0);
    DEMAND(stream->send(TAG_SUM, "%d", 4) == 0);
    DEMAND(receive(stream, tree.back_ends * (tree.is_full ? 50 : 4)) == 0);
    delete stream;
    return 0;
}

/* Filters that are assigned to back-ends, and what they make of packets before the others see them. */
int assigned(const Shape& tree, int halves, int pairs, int twofold, int doubled)
{
    PacketPtr packet;
    std::string all = std::to_string(SFILTER_WAITFORALL) + " => * ;", none = "0 => * ;";
    Stream* stream = tree.net->new_Stream(tree.everyone, at_back_ends(tree, halves, TFILTER_SUM), all, none);
    DEMAND(stream != NULL && stream->send(TAG_SUM, "%d", 3) == 0 && stream->recv(NULL, packet) == 1);
    DEMAND(strcmp(packet->get_FormatString(), tree.is_full ? "%lf" : "%d") == 0);
    double sum = tree.is_full ? (*packet)[0]->get_double() : (*packet)[0]->get_int32_t();
    DEMAND(sum == tree.back_ends * (tree.is_full ? 1.5 : 3));
    delete stream;
    /* Two packets become one, which is one wave. */
    stream = tree.net->new_Stream(tree.everyone, at_back_ends(tree, pairs, TFILTER_SUM), all, none);
    DEMAND(stream != NULL);
    for (int number = 1; number < 4; number++) {
        DEMAND(stream->send(TAG_TWICE, "%d", number) == 0);
        for (int wave = 0; wave < (tree.is_full ? 1 : 2); wave++)
            DEMAND(receive(stream, tree.back_ends * (tree.is_full ? 2 * number : number)) == 0);
    }
    DEMAND(stream->recv(NULL, packet, false) == 0);
    delete stream;
    /* One becomes two, which are two waves. */
    stream = tree.net->new_Stream(tree.everyone, at_back_ends(tree, twofold, TFILTER_SUM), all, none);
    DEMAND(stream != NULL && stream->send(TAG_SUM, "%d", 2) == 0);
    for (int wave = 0; wave < (tree.is_full ? 2 : 1); wave++)
        DEMAND(receive(stream, tree.back_ends * 2) == 0);
    DEMAND(stream->recv(NULL, packet, false) == 0);
    delete stream;
    stream = tree.net->new_Stream(tree.everyone, at_back_ends(tree, doubled, TFILTER_MAX), all, none);
    const uint32_t length = tree.is_full ? 200000 : 64;
    DEMAND(stream != NULL && stream->send(TAG_ARRAY, "%d", length) == 0 && stream->recv(NULL, packet) == 1);
    int32_t* numbers = NULL;
    uint32_t count = 0;
    DEMAND(packet->unpack("%ad", &numbers, &count) == 0 && count == length);
    for (uint32_t at = 0; at < count; at++)
        DEMAND(numbers[at] == (tree.back_ends - 1) * (tree.is_full ? 2 : 1));
    free(numbers);
    delete stream;
    return 0;
}

/* What goes the other way: to the back-end itself, and up from it. */
int reversed(const Shape& tree, int without_zeros, int turn_back)
{
    if (!tree.is_full)
        return 0;
    Stream* stream =
        tree.net->new_Stream(tree.everyone, at_back_ends(tree, without_zeros, TFILTER_SUM), "51 => * ;", "0 => * ;");
    DEMAND(stream != NULL && stream->send(TAG_SUM, "%d", 0) == 0 && receive(stream, 7 * tree.back_ends) == 0);
    delete stream;
    stream = tree.net->new_Stream(tree.everyone, "0 => * ;", "50 => * ;",
                                  at_back_ends(tree, turn_back, TFILTER_NULL));
    DEMAND(stream != NULL && stream->send(TAG_RANK, "") == 0);
    std::set<Rank> ranks;
    for (int answer = 0; answer < tree.back_ends; answer++) {
        PacketPtr packet;
        Rank rank = UnknownRank;
        DEMAND(stream->recv(NULL, packet) == 1 && packet->unpack("%ud", &rank) == 0);
        ranks.insert(rank);
    }
    DEMAND(int(ranks.size()) == tree.back_ends && *ranks.rbegin() == Rank(tree.back_ends) - 1);
    delete stream;
    return 0;
}

/* A filter that fails in back-ends costs its wave and is told; the next stream works. */
int failing(const Shape& tree, int throwing)
{
    if (!tree.is_full)
        return 0;
    PacketPtr packet;
    Stream* stream =
        tree.net->new_Stream(tree.everyone, at_back_ends(tree, throwing, TFILTER_SUM), "51 => * ;", "0 => * ;");
    DEMAND(stream != NULL);
    for (int wave = 0; wave < 2; wave++)
        DEMAND(stream->send(TAG_SUM, "%d", 1) == 0 && stream->recv(NULL, packet) == -1 && tree.net->has_Error());
    delete stream;
    stream = tree.net->new_Stream(tree.everyone, TFILTER_SUM);
    DEMAND(stream != NULL && stream->send(TAG_SUM, "%d", 1) == 0 && receive(stream, tree.back_ends) == 0);
    delete stream;
    return 0;
}

/* A filter of the tool's that synchronises does not run in back-ends; what transforms does. */
int synchronised(const Shape& tree, int one_of_each, int add_one)
{
    Stream* stream = tree.net->new_Stream(tree.everyone, add_one, one_of_each);
    DEMAND(stream != NULL);
    for (int wave = 0; wave < 3; wave++)
        DEMAND(stream->send(TAG_SUM, "%d", wave) == 0 && receive(stream, tree.back_ends * wave + tree.up_runs) == 0);
    delete stream;
    return 0;
}

/* Lightweight back-ends know which filters they would have. */
int known(const Shape& tree, int add_one, int turn_back)
{
    if (tree.is_full)
        return 0;
    Stream* stream = tree.net->new_Stream(
        tree.everyone, std::to_string(add_one) + " => 0 ; " + std::to_string(TFILTER_NULL) + " => * ;", "50 => * ;",
        std::to_string(turn_back) + " => * ;");
    DEMAND(stream != NULL && stream->send(TAG_FILTERS, "") == 0);
    int assigned = 0;
    for (int answer = 0; answer < tree.back_ends; answer++) {
        PacketPtr packet;
        unsigned int up, sync, down;
        DEMAND(stream->recv(NULL, packet) == 1 && packet->unpack("%ud %ud %ud", &up, &sync, &down) == 0);
        DEMAND(up == unsigned(add_one) || up == TFILTER_NULL);
        DEMAND(sync == SFILTER_DONTWAIT && down == unsigned(turn_back));
        assigned += up == unsigned(add_one);
    }
    DEMAND(assigned == 1);
    delete stream;
    return 0;
}

}  // namespace

int main(int argc, char* argv[])
{
    DEMAND(argc == 5);
    Network* net = Network::CreateNetworkFE(argv[1], argv[2], NULL);
    DEMAND(!net->has_Error());
    std::vector<int> ids;
    DEMAND(net->load_FilterFuncs(argv[3], {"add_one", "add_runs", "halves", "pairs", "twofold", "doubled", "one_more",
                                           "one_of_each", "without_zeros", "turn_back", "throwing"}, ids) == 0);
    Shape tree = look_at(net, strcmp(argv[4], "full") == 0);
    DEMAND(upward(tree, ids[0], ids[1]) == 0);
    DEMAND(downward(tree, ids[6], ids[0]) == 0);
    DEMAND(assigned(tree, ids[2], ids[3], ids[4], ids[5]) == 0);
    DEMAND(reversed(tree, ids[8], ids[9]) == 0);
    DEMAND(failing(tree, ids[10]) == 0);
    DEMAND(synchronised(tree, ids[7], ids[0]) == 0);
    DEMAND(known(tree, ids[0], ids[9]) == 0);
    delete net;
    printf("%d runs up, %d down\n", tree.up_runs, tree.down_runs);
    return 0;
}
