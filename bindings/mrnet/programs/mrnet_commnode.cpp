/*
 * The program that networks run: as a communication process, or to give a back-end its arguments.
 *
 *     mrnet_commnode node                        a communication process, as the environment says
 *     mrnet_commnode HOST PORT RANK HOST RANK    the same
 *     mrnet_commnode back-end PROGRAM ...        runs a back-end with its five arguments
 */
#include <errno.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <sapwood.h>

#include "mrnet/Network.h"

namespace {

std::string variable(const char* name)
{
    const char* value = getenv(name);
    return value == NULL ? "" : value;
}

/* The parent's rank, by the topology that back-ends are told. */
std::string parent_of(const std::string& rank)
{
    sapwood_topology_t* topology = NULL;
    sapwood_topology_node_t node;
    std::string parent = std::to_string(MRN::UnknownRank);
    std::string text = variable("SAPWOOD_MRNET_TOPOLOGY");
    if (sapwood_topology_read(&topology, NULL, text.c_str(), 0, NULL) != SAPWOOD_OK)
        return parent;
    for (size_t at = 0; at < sapwood_topology_size(topology); at++)
        if (sapwood_topology_node(topology, at, &node, NULL) == SAPWOOD_OK &&
            std::to_string(node.rank) == rank)
            parent = std::to_string(node.parent);
    sapwood_topology_free(&topology);
    return parent;
}

int run_back_end(char* arguments[])
{
    char host[256] = "localhost";
    gethostname(host, sizeof host - 1);
    std::string rank = variable("SAPWOOD_RANK"), parent = parent_of(rank), port = "0";
    std::string address = variable("SAPWOOD_PARENT");
    size_t colon = address.rfind(':');
    if (address.compare(0, 4, "tcp:") == 0 && colon != std::string::npos)
        port = address.substr(colon + 1);
    std::vector<char*> words;
    for (char** at = arguments; *at != NULL; at++)
        words.push_back(*at);
    for (std::string* word : {&port, &parent, &rank})
        if (word->empty())
            *word = "0";
    char* place[] = {host, &port[0], &parent[0], host, &rank[0], NULL};
    words.insert(words.end(), place, place + 6);
    execvp(words[0], words.data());
    fprintf(stderr, "cannot run the back-end %s: %s\n", words[0], strerror(errno));
    return 127;
}

}  // namespace

int main(int argc, char* argv[])
{
    if (argc > 2 && strcmp(argv[1], "back-end") == 0)
        return run_back_end(argv + 2);
    if (argc == 2 && strcmp(argv[1], "node") == 0) {
        sapwood_error_t error;
        if (sapwood_serve(&error) == SAPWOOD_OK)
            return 0;
        fprintf(stderr, "mrnet_commnode: %s\n", error.text);
        return 1;
    }
    MRN::Network* network = MRN::Network::CreateNetworkIN(argc - 1, argv + 1);
    if (network == NULL) {
        fprintf(stderr, "mrnet_commnode: is run by networks; see its README\n");
        return 2;
    }
    network->waitfor_ShutDown();
    bool has_failed = network->has_Error();
    if (has_failed)
        network->print_error("mrnet_commnode");
    delete network;
    return has_failed;
}
