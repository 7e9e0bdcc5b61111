/*
 * Processes as their filters see them; filter_site.hpp says what that is.
 */
#include "filter_site.hpp"

#include <sstream>

namespace MRN {

namespace {

/* What a process is, in the text of a tree. */
const char MEMBER = 'm', BACK_END = 'b', INNER = 'i';

void tell(Engine& engine, NetworkTopology::Node* node, const std::set<NetworkTopology::Node*>& back_ends,
          const std::set<Rank>& members, std::ostringstream& text)
{
    Rank rank = node->get_Rank();
    char what = members.count(rank) != 0 ? MEMBER : back_ends.count(node) != 0 ? BACK_END : INNER;
    text << rank << ' ' << engine.real(rank) << ' ' << node->get_Parent() << ' ' << what << ' '
         << node->get_HostName() << '\n';
    for (NetworkTopology::Node* child : node->get_Children())
        tell(engine, child, back_ends, members, text);
}

typedef std::map<std::pair<std::string, Rank>, std::weak_ptr<FilterSite>> Sites;

struct AllSites {
    std::mutex mutex;
    Sites sites;
};

AllSites& all_sites()
{
    static AllSites* const all = new AllSites;
    return *all;
}

}  // namespace

std::string told_tree(Engine& engine, const std::set<Rank>& members)
{
    std::set<NetworkTopology::Node*> back_ends;
    engine.topology.get_BackEndNodes(back_ends);
    std::ostringstream text;
    if (engine.topology.get_Root() != NULL)
        tell(engine, engine.topology.get_Root(), back_ends, members, text);
    return text.str();
}

std::shared_ptr<FilterSite> FilterSite::enter(const std::string& mark, const std::string& tree, Rank real_rank,
                                              uint32_t stream)
{
    AllSites& all = all_sites();
    std::lock_guard<std::mutex> guard(all.mutex);
    std::weak_ptr<FilterSite>& known = all.sites[{mark, real_rank}];
    std::shared_ptr<FilterSite> site = known.lock();
    if (!site) {
        Network* network = new Network;
        FilterSite* made = new FilterSite(*network, real_rank);
        network->engine_ = made;
        /* A network owns its engine. */
        site = std::shared_ptr<FilterSite>(made, [](FilterSite* gone) { delete &gone->network; });
        known = site;
    }
    Hold hold(*site);
    site->add_stream(stream, site->read(tree));
    return site;
}

FilterSite::FilterSite(Network& network, Rank real_rank)
    : Engine(network, real_rank), real_rank_(real_rank), kind_(CP_NODE)
{
}

FilterSite::~FilterSite()
{
    delete_streams();
}

Rank FilterSite::shown(Rank real_rank) const
{
    auto found = shown_.find(real_rank);
    return found == shown_.end() ? real_rank : found->second;
}

std::set<Rank> FilterSite::read(const std::string& tree)
{
    std::set<Rank> members, living;
    std::istringstream lines(tree);
    Rank each, real_rank, parent;
    char what;
    std::string name;
    while (lines >> each >> real_rank >> parent >> what >> name) {
        living.insert(each);
        shown_[real_rank] = each;
        topology.add(name, 0, each, parent, what != INNER);
        if (what == MEMBER)
            members.insert(each);
        if (real_rank == real_rank_)
            kind_ = what != INNER ? BE_NODE : parent == UnknownRank ? FE_NODE : CP_NODE;
    }
    for (const auto& entry : shown_)
        if (living.count(entry.second) == 0)
            topology.remove(entry.second);
    rank = shown(real_rank_);
    return members;
}

void FilterSite::add_stream(uint32_t id, const std::set<Rank>& members)
{
    uses_[id]++;
    if (streams.count(id) != 0)
        return;
    StreamContents* contents = new StreamContents;
    contents->id = id;
    contents->is_opened = true;
    contents->ranks = members;
    streams[id] = new Stream(*this, contents);
}

void FilterSite::leave(uint32_t id)
{
    Stream* unused = NULL;
    {
        Hold hold(*this);
        if (--uses_[id] > 0)
            return;
        uses_.erase(id);
        auto found = streams.find(id);
        if (found != streams.end())
            unused = found->second;
    }
    delete unused;
}

void FilterSite::note_child(Rank real_rank)
{
    Hold hold(*this);
    Rank child = shown(real_rank);
    NetworkTopology::Node* node = topology.find_Node(child);
    if (child == rank || (node != NULL && node->get_Parent() == rank))
        return;
    if (node == NULL) {
        /* It was thought to be gone, or has come since. */
        topology.add("", 0, child, rank, false);
        return;
    }
    std::vector<Rank> between;
    for (Rank at = node->get_Parent(); at != rank; at = topology.find_Node(at)->get_Parent()) {
        if (at == UnknownRank || topology.find_Node(at) == NULL)
            return;
        between.push_back(at);
    }
    for (Rank gone : between) {
        std::set<NetworkTopology::Node*> orphans = topology.find_Node(gone)->get_Children();
        topology.remove(gone);
        for (NetworkTopology::Node* orphan : orphans)
            topology.move(orphan->get_Rank(), rank);
    }
}

TopologyLocalInfo FilterSite::place()
{
    return TopologyLocalInfo(&topology, topology.find_Node(rank));
}

}  // namespace MRN
