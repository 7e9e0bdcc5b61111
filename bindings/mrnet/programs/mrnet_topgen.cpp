/*
 * Writes a topology file for a tree on given hosts.
 */
#include <getopt.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "mrnet/Tree.h"

namespace {

const char USAGE[] =
    "usage: mrnet_topgen -t SPEC [-h HOSTS [-p N] | -b HOSTS -c HOSTS [-q N] [-r N]] [-f HOST] [-o FILE]\n"
    "  -t, --topology b:F^D | b:AxBxC | k:K@N | g:LEVELS   what tree it is\n"
    "  -h, --hosts FILE      hosts for all processes, one host[:processes] a line\n"
    "  -b, --behosts FILE    hosts for back-ends\n"
    "  -c, --cphosts FILE    hosts for communication processes\n"
    "  -f, --fehost HOST     the front-end's host; else this one\n"
    "  -o, --output FILE     the topology file; else standard output\n"
    "  -p, --maxprocs N      processes on each of the hosts, 1024 at most if not given\n"
    "  -q, --beprocs N       the same for back-ends\n"
    "  -r, --cpprocs N       the same for communication processes\n"
    "Without hosts they are read from standard input.\n";

const option OPTIONS[] = {
    {"topology", required_argument, NULL, 't'}, {"hosts", required_argument, NULL, 'h'},
    {"behosts", required_argument, NULL, 'b'},  {"cphosts", required_argument, NULL, 'c'},
    {"fehost", required_argument, NULL, 'f'},   {"output", required_argument, NULL, 'o'},
    {"outfile", required_argument, NULL, 'o'},  {"maxprocs", required_argument, NULL, 'p'},
    {"beprocs", required_argument, NULL, 'q'},  {"cpprocs", required_argument, NULL, 'r'},
    {NULL, 0, NULL, 0}};

struct Arguments {
    std::string topology, hosts, back_end_hosts, internal_hosts, front_end, output;
    unsigned int per_host = 1024, back_ends = 1024, internal = 1024;
};

int wrong(const char* what)
{
    fprintf(stderr, "mrnet_topgen: %s\n%s", what, USAGE);
    return 2;
}

std::string local_host()
{
    char name[256] = "";
    return gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

bool read_number(unsigned int& number)
{
    char* end;
    unsigned long value = strtoul(optarg, &end, 10);
    number = unsigned(value);
    return *optarg != '\0' && *end == '\0' && value > 0 && value < 1000000;
}

bool read_arguments(int argc, char* argv[], Arguments& arguments)
{
    bool is_good = true;
    for (int found; (found = getopt_long(argc, argv, "t:h:b:c:f:o:p:q:r:", OPTIONS, NULL)) != -1;) {
        switch (found) {
        case 't': arguments.topology = optarg; break;
        case 'h': arguments.hosts = optarg; break;
        case 'b': arguments.back_end_hosts = optarg; break;
        case 'c': arguments.internal_hosts = optarg; break;
        case 'f': arguments.front_end = optarg; break;
        case 'o': arguments.output = optarg; break;
        case 'p': is_good = read_number(arguments.per_host) && is_good; break;
        case 'q': is_good = read_number(arguments.back_ends) && is_good; break;
        case 'r': is_good = read_number(arguments.internal) && is_good; break;
        default: is_good = false;
        }
    }
    return is_good && optind == argc;
}

template <class Kind>
MRN::Tree* make(std::string spec, Arguments& arguments, MRN::Tree::HostList& hosts,
                MRN::Tree::HostList& internal)
{
    if (arguments.back_end_hosts.empty())
        return new Kind(spec, arguments.front_end, hosts, arguments.per_host);
    return new Kind(spec, arguments.front_end, hosts, internal, arguments.back_ends,
                    arguments.internal);
}

}  // namespace

int main(int argc, char* argv[])
{
    Arguments arguments;
    MRN::Tree::HostList hosts, internal;
    if (!read_arguments(argc, argv, arguments) || arguments.topology.size() < 3 ||
        arguments.topology[1] != ':')
        return wrong("give a topology, such as b:4^2");
    bool has_own = !arguments.back_end_hosts.empty() || !arguments.internal_hosts.empty();
    if (has_own && (!arguments.hosts.empty() || arguments.back_end_hosts.empty() ||
                    arguments.internal_hosts.empty()))
        return wrong("give either --hosts, or both --behosts and --cphosts");
    bool is_read =
        has_own ? MRN::Tree::get_HostsFromFile(arguments.back_end_hosts.c_str(), hosts) &&
                      MRN::Tree::get_HostsFromFile(arguments.internal_hosts.c_str(), internal)
        : arguments.hosts.empty() ? MRN::Tree::get_HostsFromFileStream(stdin, hosts)
                                  : MRN::Tree::get_HostsFromFile(arguments.hosts.c_str(), hosts);
    if (!is_read || hosts.empty() || (has_own && internal.empty()))
        return wrong("there are no hosts");
    if (arguments.front_end.empty())
        arguments.front_end = local_host();
    std::string spec = arguments.topology.substr(2);
    std::unique_ptr<MRN::Tree> tree;
    switch (arguments.topology[0]) {
    case 'b': tree.reset(make<MRN::BalancedTree>(spec, arguments, hosts, internal)); break;
    case 'k': tree.reset(make<MRN::KnomialTree>(spec, arguments, hosts, internal)); break;
    case 'g': tree.reset(make<MRN::GenericTree>(spec, arguments, hosts, internal)); break;
    default: return wrong("a topology begins with b:, k: or g:");
    }
    if (!tree->is_Valid())
        return 2;
    bool is_written = arguments.output.empty() ? tree->create_TopologyFile(stdout)
                                               : tree->create_TopologyFile(arguments.output.c_str());
    return is_written ? 0 : 1;
}
