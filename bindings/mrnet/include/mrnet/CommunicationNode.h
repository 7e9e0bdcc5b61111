/*
 * An end-point of communicators: a back-end as the front-end knows it.
 */
#ifndef MRNET_COMMUNICATIONNODE_H
#define MRNET_COMMUNICATIONNODE_H

#include "mrnet/Types.h"

namespace MRN {

class CommunicationNode {
    friend class FrontEnd;
    friend class Network;

  public:
    struct ltnode {
        bool operator()(const CommunicationNode* one, const CommunicationNode* other) const;
    };

    std::string get_HostName() const;
    Port get_Port() const;
    Rank get_Rank() const;

  private:
    CommunicationNode(const std::string& host, Port port, Rank rank);

    std::string host_;
    Port port_;
    Rank rank_;
};

}  // namespace MRN

#endif
