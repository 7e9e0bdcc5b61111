/*
 * The tree as it is now: processes, their hosts, and the parent of each.
 */
#ifndef MRNET_NETWORKTOPOLOGY_H
#define MRNET_NETWORKTOPOLOGY_H

#include <cmath>
#include <cstdio>

#include "mrnet/Error.h"
#include "mrnet/Types.h"
#include "xplat/Monitor.h"

namespace MRN {

class Network;

typedef enum { ALG_RANDOM = 0, ALG_WRS, ALG_SORTED_RR } ALGORITHM_T;

typedef enum {
    TOPO_NEW_BE = 0,
    TOPO_REMOVE_RANK = 1,
    TOPO_CHANGE_PARENT = 2,
    TOPO_CHANGE_PORT = 3,
    TOPO_NEW_CP = 4
} update_type;

class NetworkTopology : public Error {
    friend class TopologyLocalInfo;

  public:
    class Node {
        friend class NetworkTopology;

      public:
        std::string get_HostName() const;
        Port get_Port() const;
        Rank get_Rank() const;
        Rank get_Parent() const;
        const std::set<Node*>& get_Children() const;
        unsigned int get_NumChildren() const;
        unsigned int find_SubTreeHeight();
        bool failed() const;

      private:
        Node(const std::string& host, Port port, Rank rank, bool is_back_end);

        std::string host_;
        Port port_;
        Rank rank_;
        Node* parent_;
        std::set<Node*> children_;
        bool is_back_end_;
        bool has_failed_;
    };

    explicit NetworkTopology(Network* network);
    virtual ~NetworkTopology();

    void print_TopologyFile(const char* file) const;
    void print_DOTGraph(const char* file) const;
    void print(FILE* file) const;

    unsigned int get_NumNodes() const;
    void get_TreeStatistics(unsigned int& nodes, unsigned int& depth, unsigned int& min_fanout,
                            unsigned int& max_fanout, double& avg_fanout, double& stddev_fanout);
    Node* get_Root() const;
    Node* find_Node(Rank rank) const;
    bool node_Failed(Rank rank) const;
    void get_Leaves(std::vector<Node*>& leaves) const;
    void get_ParentNodes(std::set<Node*>& nodes) const;
    void get_OrphanNodes(std::set<Node*>& nodes) const;
    void get_BackEndNodes(std::set<Node*>& nodes) const;
    size_t num_BackEndNodes() const;
    size_t num_InternalNodes() const;

    /* What the layer itself needs. */
    Node* add(const std::string& host, Port port, Rank rank, Rank parent, bool is_back_end);
    void remove(Rank rank);
    void move(Rank rank, Rank parent);
    void set_Port(Rank rank, Port port);
    void add_ChildrenTo(const std::set<Rank>& members, Rank rank, std::set<Rank>& children) const;

  private:
    NetworkTopology(const NetworkTopology&);
    NetworkTopology& operator=(const NetworkTopology&);
    bool leads_To(const Node* node, const std::set<Rank>& members) const;
    void count(const Node* node, unsigned int depth, unsigned int& nodes, unsigned int& deepest,
               std::vector<unsigned int>& fanouts) const;

    Network* network_;
    mutable XPlat::Monitor monitor_;
    Node* root_;
    std::map<Rank, Node*> nodes_;
};

/* What a filter may know of the process that it runs in. */
class TopologyLocalInfo {
  public:
    TopologyLocalInfo(NetworkTopology* topology, NetworkTopology::Node* node);

    Rank get_Rank() const;
    unsigned int get_NumChildren() const;
    unsigned int get_NumSiblings() const;
    unsigned int get_NumDescendants() const;
    unsigned int get_NumLeafDescendants() const;
    unsigned int get_RootDistance() const;
    unsigned int get_MaxLeafDistance() const;
    const NetworkTopology* get_Topology() const;
    const Network* get_Network() const;

  private:
    NetworkTopology* topology_;
    NetworkTopology::Node* node_;
};

}  // namespace MRN

#endif
