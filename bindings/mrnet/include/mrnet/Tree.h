/*
 * Trees to be written as topology files: a specification, and the hosts to place them on.
 */
#ifndef MRNET_TREE_H
#define MRNET_TREE_H

#include <list>
#include <utility>

#include "mrnet/Types.h"

namespace MRN {

class Tree {
  public:
    typedef std::list<std::pair<std::string, unsigned int>> HostList;

    virtual ~Tree();

    bool create_TopologyFile(const char* file);
    bool create_TopologyFile(FILE* file);
    bool is_Valid() const;

    /* Hosts with how many processes each may have, as `host[:processes]`, one a line. */
    static bool get_HostsFromFile(const char* file, HostList& hosts);
    static bool get_HostsFromFileStream(FILE* file, HostList& hosts);
    static void get_HostsFromBuffer(const char* buffer, HostList& hosts);

  protected:
    Tree();
    /* Places everyone on the same hosts. */
    void grow(const std::string& shape, const std::string& fe_host, HostList& hosts,
              unsigned int per_host);
    /* Places back-ends and communication processes on hosts of their own. */
    void grow(const std::string& shape, const std::string& fe_host, HostList& be_hosts,
              HostList& int_hosts, unsigned int be_per_host, unsigned int int_per_host);

  private:
    struct Position;
    bool read(const std::string& shape, std::vector<Position>& positions);
    void write(const std::vector<Position>& positions);

    bool is_valid_;
    std::string text_;
};

class BalancedTree : public Tree {
  public:
    BalancedTree(std::string& spec, std::string& fe_host, HostList& hosts,
                 unsigned int max_per_host = 1);
    BalancedTree(std::string& spec, std::string& fe_host, HostList& be_hosts, HostList& int_hosts,
                 unsigned int be_per_host = 1, unsigned int int_per_host = 1);
};

class KnomialTree : public Tree {
  public:
    KnomialTree(std::string& spec, std::string& fe_host, HostList& hosts,
                unsigned int max_per_host = 1);
    KnomialTree(std::string& spec, std::string& fe_host, HostList& be_hosts, HostList& int_hosts,
                unsigned int be_per_host = 1, unsigned int int_per_host = 1);
};

class GenericTree : public Tree {
  public:
    GenericTree(std::string& spec, std::string& fe_host, HostList& hosts,
                unsigned int max_per_host = 1);
    GenericTree(std::string& spec, std::string& fe_host, HostList& be_hosts, HostList& int_hosts,
                unsigned int be_per_host = 1, unsigned int int_per_host = 1);
};

}  // namespace MRN

#endif
