/*
 * Trees to be written as topology files. The library knows the shapes; here each process gets a host.
 */
#include "mrnet/Tree.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "contents.hpp"

namespace MRN {

/* One process: its position among all, its parent's, and where it is to be. */
struct Tree::Position {
    size_t parent;
    bool is_back_end;
    std::string host;
    unsigned int index;
};

namespace {

/* Hosts that are filled in turns, up to how many processes each may have. */
class Slots {
  public:
    Slots(const Tree::HostList& hosts, unsigned int per_host) : at_(0)
    {
        for (const auto& host : hosts) {
            bool is_limited = host.second > 0 && host.second < per_host;
            free_.push_back({host.first, is_limited ? host.second : per_host});
        }
    }

    /* The next host with room; none if all are full. */
    const std::string* take()
    {
        for (size_t tried = 0; tried < free_.size(); tried++) {
            auto& host = free_[at_++ % free_.size()];
            if (host.second > 0) {
                host.second--;
                return &host.first;
            }
        }
        return NULL;
    }

    /* The front-end has this host, too. */
    void occupy(const std::string& name)
    {
        for (auto& host : free_)
            if (host.first == name && host.second > 0)
                host.second--;
    }

  private:
    std::vector<std::pair<std::string, unsigned int>> free_;
    size_t at_;
};

}  // namespace

Tree::Tree() : is_valid_(false) {}

Tree::~Tree() {}

bool Tree::is_Valid() const
{
    return is_valid_;
}

bool Tree::read(const std::string& shape, std::vector<Position>& positions)
{
    sapwood_topology_t* topology = NULL;
    sapwood_topology_node_t node;
    sapwood_error_t error;
    if (sapwood_topology_read(&topology, shape.c_str(), NULL, 0, &error) != SAPWOOD_OK) {
        fprintf(stderr, "mrnet: %s\n", error.text);
        return false;
    }
    std::map<Rank, size_t> place_of;
    for (size_t at = 0; at < sapwood_topology_size(topology); at++) {
        sapwood_topology_node(topology, at, &node, NULL);
        place_of[node.rank] = at;
        size_t parent = at == 0 ? 0 : place_of[node.parent];
        positions.push_back({parent, node.role == SAPWOOD_ROLE_BACK_END, "", 0});
    }
    sapwood_topology_free(&topology);
    return true;
}

/* The text of the file: every parent with its children, the root first. */
void Tree::write(const std::vector<Position>& positions)
{
    std::vector<std::vector<size_t>> children(positions.size());
    for (size_t at = 1; at < positions.size(); at++)
        children[positions[at].parent].push_back(at);
    auto name = [&](size_t at) {
        return positions[at].host + ":" + std::to_string(positions[at].index);
    };
    std::ostringstream text;
    for (size_t at = 0; at < positions.size(); at++) {
        if (children[at].empty() && at > 0)
            continue;
        text << name(at);
        const char* before = " =>\n    ";
        for (size_t child : children[at]) {
            text << before << name(child);
            before = "\n    ";
        }
        text << " ;\n\n";
    }
    text_ = text.str();
    is_valid_ = true;
}

void Tree::grow(const std::string& shape, const std::string& fe_host, HostList& hosts,
                unsigned int per_host)
{
    grow(shape, fe_host, hosts, hosts, per_host, 0);
}

void Tree::grow(const std::string& shape, const std::string& fe_host, HostList& be_hosts,
                HostList& int_hosts, unsigned int be_per_host, unsigned int int_per_host)
{
    std::vector<Position> positions;
    std::map<std::string, unsigned int> used;
    /* Without a number of their own, communication processes share the hosts of the back-ends. */
    bool is_shared = int_per_host == 0;
    Slots back_ends(be_hosts, be_per_host), internal(int_hosts, int_per_host);
    Slots& others = is_shared ? back_ends : internal;
    if (fe_host.empty() || !read(shape, positions))
        return;
    others.occupy(fe_host);
    for (size_t at = 0; at < positions.size(); at++) {
        Position& position = positions[at];
        const std::string* host = at == 0             ? &fe_host
                                  : position.is_back_end ? back_ends.take()
                                                      : others.take();
        if (host == NULL) {
            fprintf(stderr, "mrnet: the hosts have no room for %zu processes\n", positions.size());
            return;
        }
        position.host = *host;
        position.index = used[position.host]++;
    }
    write(positions);
}

bool Tree::create_TopologyFile(const char* file)
{
    FILE* out = file == NULL ? NULL : fopen(file, "w");
    if (out == NULL) {
        fprintf(stderr, "mrnet: cannot write %s\n", file == NULL ? "" : file);
        return false;
    }
    bool is_written = create_TopologyFile(out);
    return fclose(out) == 0 && is_written;
}

bool Tree::create_TopologyFile(FILE* file)
{
    return is_valid_ && file != NULL && fputs(text_.c_str(), file) >= 0 && fflush(file) == 0;
}

void Tree::get_HostsFromBuffer(const char* buffer, HostList& hosts)
{
    std::istringstream words(buffer == NULL ? "" : buffer);
    for (std::string word; words >> word;) {
        size_t colon = word.find(':');
        unsigned int processes = 0;
        if (colon != std::string::npos)
            processes = unsigned(strtoul(word.c_str() + colon + 1, NULL, 10));
        hosts.push_back({word.substr(0, colon), processes});
    }
}

bool Tree::get_HostsFromFileStream(FILE* file, HostList& hosts)
{
    char line[512];
    if (file == NULL)
        return false;
    while (fgets(line, sizeof line, file) != NULL)
        get_HostsFromBuffer(line, hosts);
    return ferror(file) == 0;
}

bool Tree::get_HostsFromFile(const char* file, HostList& hosts)
{
    FILE* in = file == NULL ? NULL : fopen(file, "r");
    if (in == NULL)
        return false;
    bool is_read = get_HostsFromFileStream(in, hosts);
    fclose(in);
    return is_read;
}

BalancedTree::BalancedTree(std::string& spec, std::string& fe_host, HostList& hosts,
                           unsigned int max_per_host)
{
    grow("b:" + spec, fe_host, hosts, max_per_host);
}

BalancedTree::BalancedTree(std::string& spec, std::string& fe_host, HostList& be_hosts,
                           HostList& int_hosts, unsigned int be_per_host,
                           unsigned int int_per_host)
{
    grow("b:" + spec, fe_host, be_hosts, int_hosts, be_per_host, int_per_host);
}

KnomialTree::KnomialTree(std::string& spec, std::string& fe_host, HostList& hosts,
                         unsigned int max_per_host)
{
    grow("k:" + spec, fe_host, hosts, max_per_host);
}

KnomialTree::KnomialTree(std::string& spec, std::string& fe_host, HostList& be_hosts,
                         HostList& int_hosts, unsigned int be_per_host, unsigned int int_per_host)
{
    grow("k:" + spec, fe_host, be_hosts, int_hosts, be_per_host, int_per_host);
}

GenericTree::GenericTree(std::string& spec, std::string& fe_host, HostList& hosts,
                         unsigned int max_per_host)
{
    grow("g:" + spec, fe_host, hosts, max_per_host);
}

GenericTree::GenericTree(std::string& spec, std::string& fe_host, HostList& be_hosts,
                         HostList& int_hosts, unsigned int be_per_host, unsigned int int_per_host)
{
    grow("g:" + spec, fe_host, be_hosts, int_hosts, be_per_host, int_per_host);
}

}  // namespace MRN
