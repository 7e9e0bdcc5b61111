/*
 * What a tool can do wrong is answered with an error code, and never ends the process.
 *
 *     bad_input TOPOLOGY BACK-END
 */
#include <arpa/inet.h>
#include <sys/socket.h>

#include <cstring>
#include <map>

#include "answer.hpp"

using namespace MRN;

namespace {

int topologies(const char* back_end)
{
    struct {
        const char* text;
        ErrorCode wanted;
    } cases[] = {
        {"localhost:0 => localhost:1 ; localhost:1 => localhost:0 ;", ERR_TOPOLOGY_CYCLE},
        {"localhost:0 => localhost:0 ;", ERR_TOPOLOGY_CYCLE},
        {"localhost:0 => localhost:1 ; localhost:2 => localhost:3 ; localhost:3 => localhost:2 ;",
         ERR_TOPOLOGY_CYCLE},
        {"localhost:0 => localhost:1 ; localhost:2 => localhost:3 ;", ERR_TOPOLOGY_NOTCONNECTED},
        {"localhost:0 => ", ERR_TOPOLOGY_FORMAT},
        {"", ERR_TOPOLOGY_FORMAT},
    };
    for (auto& each : cases) {
        Network* net = Network::CreateNetworkFE(each.text, back_end, NULL, NULL, true, true);
        if (net->get_Error() != each.wanted) {
            fprintf(stderr, "%s: %d: %s\n", each.text, net->get_Error(),
                    net->get_ErrorStr(net->get_Error()));
            return 1;
        }
        PacketPtr packet;
        DEMAND(net->is_ShutDown() && net->recv(NULL, packet, NULL) == -1);
        delete net;
    }
    Network* net = Network::CreateNetworkFE("/no/such/file", back_end, NULL);
    DEMAND(net->get_Error() == ERR_TOPOLOGY_FORMAT);
    delete net;
    return 0;
}

int programs(const char* topology, const char* back_end)
{
    Network* net = Network::CreateNetworkFE(topology, "/no/such/program", NULL);
    DEMAND(net->get_Error() == ERR_NETWORK_FAILURE);
    DEMAND(strstr(net->get_ErrorStr(ERR_NETWORK_FAILURE), "/no/such/program") != NULL);
    delete net;
    std::map<std::string, std::string> attributes = {{"MRNET_COMMNODE_PATH", "/no/such/node"}};
    net = Network::CreateNetworkFE(topology, back_end, NULL, &attributes);
    DEMAND(net->get_Error() == ERR_NETWORK_FAILURE);
    delete net;
    const char* words[] = {"x", "host", "nonsense", "1", "host", "2"};
    net = Network::CreateNetworkBE(6, const_cast<char**>(words));
    DEMAND(net != NULL && net->get_Error() == ERR_NETWORK_FAILURE);
    delete net;
    return 0;
}

int filters(Network* net)
{
    Communicator* everyone = net->get_BroadcastCommunicator();
    DEMAND(net->new_Stream(everyone, 4711) == NULL && net->get_Error() == ERR_INTERNAL);
    DEMAND(net->new_Stream(everyone, TFILTER_SUM, 4711) == NULL);
    DEMAND(net->new_Stream(everyone, TFILTER_SUM, TFILTER_SUM) == NULL);
    DEMAND(net->new_Stream(everyone, "1 => x ;", "51 => * ;", "0 => * ;") == NULL);
    DEMAND(net->new_Stream(everyone, "1 = 5 ;", "51 => * ;", "0 => * ;") == NULL);
    DEMAND(net->new_Stream(NULL) == NULL && net->new_Stream(net->new_Communicator()) == NULL);
    DEMAND(net->load_FilterFunc("/no/such/object.so", "none") == -1);
    std::vector<int> ids;
    DEMAND(net->load_FilterFuncs("/no/such/object.so", {"none"}, ids) != 1);
    return 0;
}

int formats(Network* net)
{
    Stream* stream = net->new_Stream(net->get_BroadcastCommunicator(), TFILTER_SUM);
    PacketPtr packet, none;
    int value = 0;
    DEMAND(stream->send(TAG_SUM, "%q", 1) == -1 && net->get_Error() == ERR_FORMATSTR);
    DEMAND(stream->send(TAG_SUM, "%", 1) == -1 && stream->send(TAG_SUM, "d", 1) == -1);
    DEMAND(stream->send(none) == -1);
    DEMAND(stream->send(TAG_MIXED, "") == 0 && stream->recv(NULL, packet) == -1);
    DEMAND(net->get_Error() == ERR_FORMATSTR);
    DEMAND(stream->send(TAG_SUM, "%d", 1) == 0 && stream->recv(NULL, packet) == 1);
    DEMAND(packet->unpack("%d", &value) == 0 && packet->unpack("%lf", &value) == -1);
    DEMAND(stream->send(TAG_BAD, "") == 0 && stream->recv(NULL, packet) == 1);
    DEMAND(packet->unpack("%d", &value) == 0 && value == int(stream->size()));
    delete stream;
    return 0;
}

/* A peer that does not know the key is not listened to, whatever is said. */
int junk(const char* back_end)
{
    Network* net = Network::CreateNetworkFE("localhost:0 => localhost:1 ;", NULL, NULL, NULL, true, true);
    DEMAND(!net->has_Error());
    std::vector<NetworkTopology::Node*> leaves;
    net->get_NetworkTopology()->get_Leaves(leaves);
    DEMAND(leaves.size() == 1 && leaves[0]->get_Port() != 0);
    int talker = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(leaves[0]->get_Port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::string rubbish(65536, '\xff');
    DEMAND(connect(talker, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    (void)!::send(talker, rubbish.data(), rubbish.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    close(talker);
    DEMAND(net->get_NetworkTopology()->num_BackEndNodes() == 0 && !net->is_ShutDown());
    delete net;
    (void)back_end;
    return 0;
}

}  // namespace

int main(int argc, char* argv[])
{
    DEMAND(argc == 3 && topologies(argv[2]) == 0 && programs(argv[1], argv[2]) == 0);
    Network* net = Network::CreateNetworkFE(argv[1], argv[2], NULL);
    DEMAND(!net->has_Error() && filters(net) == 0 && formats(net) == 0);
    delete net;
    DEMAND(junk(argv[2]) == 0);
    printf("all refused\n");
    return 0;
}
