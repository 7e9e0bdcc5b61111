/*
 * Filters with MRNet's signature: parameters, state, topology, reverse output, and what fails.
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

}  // namespace

int main(int argc, char* argv[])
{
    DEMAND(argc == 4);
    Network* net = Network::CreateNetworkFE(argv[1], argv[2], NULL);
    if (net->has_Error())
        net->print_error("loaded_filters");
    DEMAND(!net->has_Error());
    int sum = net->load_FilterFunc(argv[3], "scaled_sum");
    std::vector<int> ids;
    DEMAND(sum > SFILTER_TIMEOUT);
    DEMAND(net->load_FilterFuncs(argv[3], {"count_waves", "turn_back", "throwing"}, ids) == 0);
    DEMAND(net->load_FilterFunc(argv[3], "without_format") == -1 && net->has_Error());
    DEMAND(net->load_FilterFunc(argv[3], "not_there") == -1);
    DEMAND(sums(net, sum) == 0 && states(net, ids[0]) == 0 && reversal(net, ids[1]) == 0);
    Stream* stream = net->new_Stream(net->get_BroadcastCommunicator(), ids[2]);
    PacketPtr packet;
    DEMAND(stream->send(TAG_SUM, "%d", 1) == 0 && stream->recv(NULL, packet) == -1);
    delete stream;
    delete net;
    printf("filtered\n");
    return 0;
}
