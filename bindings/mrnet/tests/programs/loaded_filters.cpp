/*
 * Filters with MRNet's signature: parameters, state, topology, reverse output, and what fails; for
 * transformation and for synchronisation.
 *
 *     loaded_filters TOPOLOGY BACK-END LIBRARY
 */
#include <cstring>

#include "answer.hpp"

using namespace MRN;

namespace {

int sums(Network* net, int filter)
{
    Communicator* everyone = net->get_BroadcastCommunicator();
    Stream* stream = net->new_Stream(everyone, filter);
    PacketPtr packet;
    int sum = 0;
    DEMAND(stream != NULL && stream->send(TAG_SUM, "%d", 3) == 0 && stream->recv(NULL, packet) == 1);
    DEMAND(packet->unpack("%d", &sum) == 0 && sum == 12);
    DEMAND(stream->set_FilterParameters(FILTER_UPSTREAM_TRANS, "%d", 10) == 0);
    DEMAND(stream->send(TAG_SUM, "%d", 3) == 0 && stream->recv(NULL, packet) == 1);
    DEMAND(packet->unpack("%d", &sum) == 0 && sum == 120);
    DEMAND(stream->send(TAG_RANK, "") == 0 && stream->recv(NULL, packet) == -1);
    DEMAND(net->get_Error() == ERR_FORMATSTR);
    delete stream;
    /* At rank 6 alone: what rank 5 passes comes as it is. */
    std::string up = std::to_string(filter) + " => 6 ; " + std::to_string(TFILTER_NULL) + " => * ;";
    stream = net->new_Stream(everyone, up, "51 => * ;", "0 => * ;");
    DEMAND(stream != NULL && stream->send(TAG_SUM, "%d", 2) == 0);
    int packets[3];
    for (int& value : packets)
        DEMAND(stream->recv(NULL, packet) == 1 && packet->unpack("%d", &value) == 0);
    DEMAND(packets[0] + packets[1] + packets[2] == 8);
    delete stream;
    return 0;
}

int states(Network* net, int filter)
{
    Stream* stream = net->new_Stream(net->get_BroadcastCommunicator(), filter);
    DEMAND(stream != NULL);
    for (int wave = 1; wave <= 3; wave++) {
        PacketPtr packet;
        int waves = 0;
        uint32_t *numbers = NULL, count = 0, names = 0;
        char **texts = NULL, *text = NULL;
        DEMAND(stream->send(TAG_SUM, "%d", 3) == 0 && stream->recv(NULL, packet) == 1);
        DEMAND(packet->unpack("%d %aud %as %s", &waves, &numbers, &count, &texts, &names, &text) == 0);
        DEMAND(waves == wave && count == 2 && numbers[0] == 2 && numbers[1] == 4);
        DEMAND(names == 2 && strcmp(texts[1], "leaves") == 0 && strcmp(text, "counted") == 0);
        free(texts[0]), free(texts[1]), free(texts), free(text), free(numbers);
    }
    delete stream;
    return 0;
}

int reversal(Network* net, int filter)
{
    Stream* stream = net->new_Stream(net->get_BroadcastCommunicator(), TFILTER_NULL, SFILTER_DONTWAIT, filter);
    PacketPtr packet;
    Rank rank = 0;
    DEMAND(stream != NULL && stream->send(TAG_RANK, "") == 0 && stream->recv(NULL, packet) == 1);
    DEMAND(packet->unpack("%ud", &rank) == 0 && rank == net->get_LocalRank());
    DEMAND(stream->send(TAG_SUM, "%d", 1) == 0 && stream->recv(NULL, packet) == 1);
    delete stream;
    return 0;
}

/* Receives `count` packets of one number each, which has to be `wanted`. */
int numbers(Stream* stream, int count, int wanted)
{
    PacketPtr packet;
    for (int at = 0; at < count; at++) {
        int number = 0;
        DEMAND(stream->recv(NULL, packet) == 1 && packet->unpack("%d", &number) == 0);
        DEMAND(number == wanted);
    }
    DEMAND(stream->recv(NULL, packet, false) == 0);
    return 0;
}

/* Packets go on by threes at the front-end, from any back-end, to a sum of the tool's own. */
int synchronised(Network* net, int by_number, int sum)
{
    Communicator* everyone = net->get_BroadcastCommunicator();
    std::string sync = std::to_string(by_number) + " => " + std::to_string(net->get_LocalRank()) + " ; " +
                       std::to_string(SFILTER_DONTWAIT) + " => * ;";
    std::string up = std::to_string(sum) + " => * ;";
    Stream* stream = net->new_Stream(everyone, up, sync, "0 => * ;");
    DEMAND(stream != NULL && stream->send(TAG_SUM, "%d", 3) == 0 && numbers(stream, 4, 3) == 0);
    DEMAND(stream->set_FilterParameters(FILTER_UPSTREAM_SYNC, "%d", 3) == 0);
    DEMAND(stream->set_FilterParameters(FILTER_UPSTREAM_TRANS, "%d", 10) == 0);
    for (int wave = 0; wave < 3; wave++)
        DEMAND(stream->send(TAG_SUM, "%d", 3) == 0);
    DEMAND(numbers(stream, 4, 90) == 0);
    delete stream;
    /* At every process, before a sum that is built in. */
    stream = net->new_Stream(everyone, TFILTER_SUM, by_number);
    DEMAND(stream != NULL && stream->set_FilterParameters(FILTER_UPSTREAM_SYNC, "%d", 2) == 0);
    DEMAND(stream->send(TAG_TWICE, "%d", 3) == 0 && numbers(stream, 2, 12) == 0);
    delete stream;
    return 0;
}

/* What else a function that synchronises may do: answer, keep its state, fail. */
int synchronised_oddly(Network* net, int without_zeros, int count_waves, int throwing)
{
    Communicator* everyone = net->get_BroadcastCommunicator();
    PacketPtr packet;
    Stream* stream = net->new_Stream(everyone, TFILTER_NULL, without_zeros);
    /* Each of two children of two processes sends 0, for which both get a request. */
    DEMAND(stream != NULL && stream->send(TAG_SUM, "%d", 0) == 0 && numbers(stream, 8, 7) == 0);
    delete stream;
    stream = net->new_Stream(everyone, TFILTER_NULL, count_waves);
    DEMAND(stream != NULL && stream->send(TAG_SUM, "%d", 1) == 0);
    for (int wave = 1; wave <= 4; wave++)
        DEMAND(stream->recv(NULL, packet) == 1 && (*packet)[0]->get_int32_t() == wave);
    delete stream;
    stream = net->new_Stream(everyone, TFILTER_NULL, throwing);
    DEMAND(stream != NULL && stream->send(TAG_SUM, "%d", 1) == 0 && stream->recv(NULL, packet) == -1);
    delete stream;
    return 0;
}

int not_synchronised(Network* net, int loaded)
{
    Communicator* everyone = net->get_BroadcastCommunicator();
    DEMAND(net->new_Stream(everyone, TFILTER_SUM, TFILTER_MAX) == NULL);
    DEMAND(net->new_Stream(everyone, TFILTER_SUM, loaded + 1000) == NULL);
    std::string mixed = std::to_string(loaded) + " => 4 ; " + std::to_string(SFILTER_WAITFORALL) + " => * ;";
    DEMAND(net->new_Stream(everyone, "1 => * ;", mixed, "0 => * ;") == NULL);
    DEMAND(net->get_Error() == ERR_INTERNAL);
    return 0;
}

}  // namespace

int main(int argc, char* argv[])
{
    DEMAND(argc == 4);
    Network* net = Network::CreateNetworkFE(argv[1], argv[2], NULL);
    if (net->has_Error())
        net->print_error("loaded_filters");
    DEMAND(!net->has_Error());
    int sum = net->load_FilterFunc(argv[3], "scaled_sum");
    int by_number = net->load_FilterFunc(argv[3], "by_number");
    std::vector<int> ids;
    DEMAND(by_number == sum + 1);
    DEMAND(sum > SFILTER_TIMEOUT);
    DEMAND(net->load_FilterFuncs(argv[3], {"count_waves", "turn_back", "throwing", "without_zeros"}, ids) == 0);
    DEMAND(net->load_FilterFunc(argv[3], "without_format") == -1 && net->has_Error());
    DEMAND(net->load_FilterFunc(argv[3], "not_there") == -1);
    DEMAND(sums(net, sum) == 0 && states(net, ids[0]) == 0 && reversal(net, ids[1]) == 0);
    DEMAND(synchronised(net, by_number, sum) == 0 && not_synchronised(net, by_number) == 0);
    DEMAND(synchronised_oddly(net, ids[3], ids[0], ids[2]) == 0);
    Stream* stream = net->new_Stream(net->get_BroadcastCommunicator(), ids[2]);
    PacketPtr packet;
    DEMAND(stream->send(TAG_SUM, "%d", 1) == 0 && stream->recv(NULL, packet) == -1);
    delete stream;
    delete net;
    printf("filtered\n");
    return 0;
}
