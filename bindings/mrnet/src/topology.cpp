/*
 * The tree as it is now. Nodes are never freed while the network lives, since tools keep pointers
 * to them: one that is gone is no part of the tree any more.
 */
#include <cmath>
#include <fstream>
#include <memory>

#include "engine.hpp"

namespace MRN {

namespace {

class Locked {
  public:
    explicit Locked(XPlat::Monitor& monitor) : monitor_(monitor) { monitor_.Lock(); }
    ~Locked() { monitor_.Unlock(); }

  private:
    XPlat::Monitor& monitor_;
};

}  // namespace

NetworkTopology::Node::Node(const std::string& host, Port port, Rank rank, bool is_back_end)
    : host_(host), port_(port), rank_(rank), parent_(NULL), is_back_end_(is_back_end),
      has_failed_(false)
{
}

std::string NetworkTopology::Node::get_HostName() const
{
    return host_;
}

Port NetworkTopology::Node::get_Port() const
{
    return port_;
}

Rank NetworkTopology::Node::get_Rank() const
{
    return rank_;
}

Rank NetworkTopology::Node::get_Parent() const
{
    return parent_ == NULL ? UnknownRank : parent_->rank_;
}

const std::set<NetworkTopology::Node*>& NetworkTopology::Node::get_Children() const
{
    return children_;
}

unsigned int NetworkTopology::Node::get_NumChildren() const
{
    return unsigned(children_.size());
}

unsigned int NetworkTopology::Node::find_SubTreeHeight()
{
    unsigned int height = 0;
    for (Node* child : children_) {
        unsigned int below = child->find_SubTreeHeight() + 1;
        height = below > height ? below : height;
    }
    return height;
}

bool NetworkTopology::Node::failed() const
{
    return has_failed_;
}

NetworkTopology::NetworkTopology(Network* network) : network_(network), root_(NULL) {}

NetworkTopology::~NetworkTopology()
{
    for (auto& node : nodes_)
        delete node.second;
}

NetworkTopology::Node* NetworkTopology::add(const std::string& host, Port port, Rank rank,
                                            Rank parent, bool is_back_end)
{
    Locked locked(monitor_);
    Node*& node = nodes_[rank];
    if (node == NULL)
        node = new Node(host, port, rank, is_back_end);
    node->has_failed_ = false;
    auto above = nodes_.find(parent);
    if (parent == UnknownRank) {
        root_ = node;
    } else if (above != nodes_.end()) {
        if (node->parent_ != NULL)
            node->parent_->children_.erase(node);
        node->parent_ = above->second;
        above->second->children_.insert(node);
    }
    return node;
}

void NetworkTopology::remove(Rank rank)
{
    Locked locked(monitor_);
    auto found = nodes_.find(rank);
    if (found == nodes_.end() || found->second == root_)
        return;
    Node* node = found->second;
    node->has_failed_ = true;
    if (node->parent_ != NULL)
        node->parent_->children_.erase(node);
    for (Node* child : node->children_)
        child->parent_ = NULL;
    node->children_.clear();
}

void NetworkTopology::move(Rank rank, Rank parent)
{
    Locked locked(monitor_);
    auto node = nodes_.find(rank), above = nodes_.find(parent);
    if (node == nodes_.end() || above == nodes_.end())
        return;
    if (node->second->parent_ != NULL)
        node->second->parent_->children_.erase(node->second);
    node->second->parent_ = above->second;
    above->second->children_.insert(node->second);
}

void NetworkTopology::set_Port(Rank rank, Port port)
{
    Locked locked(monitor_);
    auto found = nodes_.find(rank);
    if (found != nodes_.end())
        found->second->port_ = port;
}

void NetworkTopology::print_TopologyFile(const char* file) const
{
    Locked locked(monitor_);
    std::ofstream out(file);
    auto name = [](const Node* node) {
        return node->host_ + ":" + std::to_string(node->rank_);
    };
    for (const auto& entry : nodes_) {
        const Node* node = entry.second;
        if (node->has_failed_ || (node->children_.empty() && node != root_))
            continue;
        out << name(node);
        const char* before = " =>\n    ";
        for (const Node* child : node->children_) {
            out << before << name(child);
            before = "\n    ";
        }
        out << " ;\n";
    }
    if (!out)
        error(ERR_SYSTEM, UnknownRank, "cannot write %s", file);
}

void NetworkTopology::print_DOTGraph(const char* file) const
{
    Locked locked(monitor_);
    std::ofstream out(file);
    out << "digraph G {\n    node [style=filled];\n";
    for (const auto& entry : nodes_) {
        const Node* node = entry.second;
        if (node->has_failed_)
            continue;
        out << "    " << node->rank_ << " [label=\"" << node->host_ << ":" << node->rank_ << "\"];\n";
        for (const Node* child : node->children_)
            out << "    " << node->rank_ << " -> " << child->rank_ << ";\n";
    }
    out << "}\n";
    if (!out)
        error(ERR_SYSTEM, UnknownRank, "cannot write %s", file);
}

void NetworkTopology::print(FILE* file) const
{
    Locked locked(monitor_);
    if (file == NULL)
        return;
    for (const auto& entry : nodes_) {
        const Node* node = entry.second;
        if (node->has_failed_)
            continue;
        fprintf(file, "%s:%u", node->host_.c_str(), node->rank_);
        for (const Node* child : node->children_)
            fprintf(file, " %u", child->rank_);
        fputc('\n', file);
    }
    fflush(file);
}

unsigned int NetworkTopology::get_NumNodes() const
{
    Locked locked(monitor_);
    unsigned int count = 0;
    for (const auto& entry : nodes_)
        count += !entry.second->has_failed_;
    return count;
}

void NetworkTopology::count(const Node* node, unsigned int depth, unsigned int& nodes,
                            unsigned int& deepest, std::vector<unsigned int>& fanouts) const
{
    nodes++;
    deepest = depth > deepest ? depth : deepest;
    if (!node->children_.empty())
        fanouts.push_back(unsigned(node->children_.size()));
    for (const Node* child : node->children_)
        count(child, depth + 1, nodes, deepest, fanouts);
}

void NetworkTopology::get_TreeStatistics(unsigned int& nodes, unsigned int& depth,
                                         unsigned int& min_fanout, unsigned int& max_fanout,
                                         double& avg_fanout, double& stddev_fanout)
{
    Locked locked(monitor_);
    std::vector<unsigned int> fanouts;
    nodes = depth = min_fanout = max_fanout = 0;
    avg_fanout = stddev_fanout = 0;
    if (root_ == NULL)
        return;
    count(root_, 0, nodes, depth, fanouts);
    if (fanouts.empty())
        return;
    min_fanout = unsigned(-1);
    for (unsigned int fanout : fanouts) {
        min_fanout = fanout < min_fanout ? fanout : min_fanout;
        max_fanout = fanout > max_fanout ? fanout : max_fanout;
        avg_fanout += double(fanout) / double(fanouts.size());
    }
    for (unsigned int fanout : fanouts)
        stddev_fanout += (fanout - avg_fanout) * (fanout - avg_fanout) / double(fanouts.size());
    stddev_fanout = std::sqrt(stddev_fanout);
}

NetworkTopology::Node* NetworkTopology::get_Root() const
{
    Locked locked(monitor_);
    return root_;
}

NetworkTopology::Node* NetworkTopology::find_Node(Rank rank) const
{
    Locked locked(monitor_);
    auto found = nodes_.find(rank);
    return found == nodes_.end() || found->second->has_failed_ ? NULL : found->second;
}

bool NetworkTopology::node_Failed(Rank rank) const
{
    Locked locked(monitor_);
    auto found = nodes_.find(rank);
    return found != nodes_.end() && found->second->has_failed_;
}

bool NetworkTopology::leads_To(const Node* node, const std::set<Rank>& members) const
{
    if (members.count(node->rank_) != 0)
        return true;
    for (const Node* child : node->children_)
        if (leads_To(child, members))
            return true;
    return false;
}

void NetworkTopology::add_ChildrenTo(const std::set<Rank>& members, Rank rank,
                                     std::set<Rank>& children) const
{
    Locked locked(monitor_);
    auto found = nodes_.find(rank);
    if (found == nodes_.end())
        return;
    for (const Node* child : found->second->children_)
        if (leads_To(child, members))
            children.insert(child->rank_);
}

void NetworkTopology::get_Leaves(std::vector<Node*>& leaves) const
{
    Locked locked(monitor_);
    for (const auto& entry : nodes_)
        if (!entry.second->has_failed_ && entry.second->children_.empty())
            leaves.push_back(entry.second);
}

void NetworkTopology::get_ParentNodes(std::set<Node*>& nodes) const
{
    Locked locked(monitor_);
    for (const auto& entry : nodes_)
        if (!entry.second->has_failed_ && !entry.second->children_.empty())
            nodes.insert(entry.second);
}

void NetworkTopology::get_OrphanNodes(std::set<Node*>& nodes) const
{
    Locked locked(monitor_);
    for (const auto& entry : nodes_)
        if (!entry.second->has_failed_ && entry.second->parent_ == NULL && entry.second != root_)
            nodes.insert(entry.second);
}

void NetworkTopology::get_BackEndNodes(std::set<Node*>& nodes) const
{
    Locked locked(monitor_);
    for (const auto& entry : nodes_)
        if (!entry.second->has_failed_ && entry.second->is_back_end_)
            nodes.insert(entry.second);
}

size_t NetworkTopology::num_BackEndNodes() const
{
    std::set<Node*> nodes;
    get_BackEndNodes(nodes);
    return nodes.size();
}

size_t NetworkTopology::num_InternalNodes() const
{
    Locked locked(monitor_);
    size_t count = 0;
    for (const auto& entry : nodes_)
        count += !entry.second->has_failed_ && !entry.second->is_back_end_ && entry.second != root_;
    return count;
}

TopologyLocalInfo::TopologyLocalInfo(NetworkTopology* topology, NetworkTopology::Node* node)
    : topology_(topology), node_(node)
{
}

namespace {

unsigned int descendants(const NetworkTopology::Node* node, bool leaves_only)
{
    unsigned int count = 0;
    for (const NetworkTopology::Node* child : node->get_Children())
        count += descendants(child, leaves_only) + (!leaves_only || child->get_Children().empty());
    return count;
}

}  // namespace

Rank TopologyLocalInfo::get_Rank() const
{
    return node_ == NULL ? UnknownRank : node_->get_Rank();
}

unsigned int TopologyLocalInfo::get_NumChildren() const
{
    return node_ == NULL ? 0 : node_->get_NumChildren();
}

unsigned int TopologyLocalInfo::get_NumSiblings() const
{
    const NetworkTopology::Node* parent =
        node_ == NULL ? NULL : topology_->find_Node(node_->get_Parent());
    return parent == NULL ? 0 : parent->get_NumChildren() - 1;
}

unsigned int TopologyLocalInfo::get_NumDescendants() const
{
    return node_ == NULL ? 0 : descendants(node_, false);
}

unsigned int TopologyLocalInfo::get_NumLeafDescendants() const
{
    return node_ == NULL ? 0 : descendants(node_, true);
}

unsigned int TopologyLocalInfo::get_RootDistance() const
{
    unsigned int distance = 0;
    const NetworkTopology::Node* node = node_;
    while (node != NULL && node->get_Parent() != UnknownRank) {
        node = topology_->find_Node(node->get_Parent());
        distance++;
    }
    return distance;
}

unsigned int TopologyLocalInfo::get_MaxLeafDistance() const
{
    return node_ == NULL ? 0 : node_->find_SubTreeHeight();
}

const NetworkTopology* TopologyLocalInfo::get_Topology() const
{
    return topology_;
}

const Network* TopologyLocalInfo::get_Network() const
{
    return topology_ == NULL ? NULL : topology_->network_;
}

}  // namespace MRN
