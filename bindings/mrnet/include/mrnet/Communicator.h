/*
 * A set of end-points, for streams to be opened to.
 */
#ifndef MRNET_COMMUNICATOR_H
#define MRNET_COMMUNICATOR_H

#include "mrnet/CommunicationNode.h"
#include "mrnet/Types.h"

namespace MRN {

class Network;

class Communicator {
    friend class FrontEnd;
    friend class Network;

  public:
    virtual ~Communicator();

    /* Whether there is such an end-point. */
    bool add_EndPoint(Rank rank);
    bool add_EndPoint(CommunicationNode* node);
    const std::set<CommunicationNode*>& get_EndPoints() const;
    unsigned int size() const;

  private:
    explicit Communicator(Network* network);
    Communicator(const Communicator&);
    Communicator& operator=(const Communicator&);

    Network* network_;
    std::set<CommunicationNode*> end_points_;
};

}  // namespace MRN

#endif
