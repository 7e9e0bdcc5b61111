/*
 * Communicators and end-points.
 */
#include "mrnet/Communicator.h"

#include "engine.hpp"
#include "internal.hpp"

namespace MRN {

bool CommunicationNode::ltnode::operator()(const CommunicationNode* one,
                                           const CommunicationNode* other) const
{
    return one->get_Rank() < other->get_Rank();
}

CommunicationNode::CommunicationNode(const std::string& host, Port port, Rank rank)
    : host_(host), port_(port), rank_(rank)
{
}

std::string CommunicationNode::get_HostName() const
{
    return host_;
}

Port CommunicationNode::get_Port() const
{
    return port_;
}

Rank CommunicationNode::get_Rank() const
{
    return rank_;
}

Communicator::Communicator(Network* network) : network_(network) {}

Communicator::~Communicator() {}

bool Communicator::add_EndPoint(Rank rank)
{
    return add_EndPoint(network_->get_EndPoint(rank));
}

bool Communicator::add_EndPoint(CommunicationNode* node)
{
    if (node == NULL || network_->get_EndPoint(node->get_Rank()) != node)
        return false;
    end_points_.insert(node);
    return true;
}

const std::set<CommunicationNode*>& Communicator::get_EndPoints() const
{
    return end_points_;
}

unsigned int Communicator::size() const
{
    return unsigned(end_points_.size());
}

Communicator* Network::get_BroadcastCommunicator() const
{
    engine_->refresh();
    Engine::Hold hold(*engine_);
    if (engine_->communicators.empty())
        engine_->communicators.push_back(new Communicator(const_cast<Network*>(this)));
    return engine_->communicators.front();
}

Communicator* Network::new_Communicator()
{
    get_BroadcastCommunicator();
    Engine::Hold hold(*engine_);
    engine_->communicators.push_back(new Communicator(this));
    return engine_->communicators.back();
}

Communicator* Network::new_Communicator(Communicator& other)
{
    Communicator* communicator = new_Communicator();
    communicator->end_points_ = other.end_points_;
    return communicator;
}

Communicator* Network::new_Communicator(const std::set<Rank>& ranks)
{
    Communicator* communicator = new_Communicator();
    for (Rank rank : ranks)
        if (!communicator->add_EndPoint(rank))
            error(ERR_INTERNAL, engine_->rank, "there is no back-end of rank %u", rank);
    return communicator;
}

Communicator* Network::new_Communicator(std::set<CommunicationNode*>& nodes)
{
    Communicator* communicator = new_Communicator();
    for (CommunicationNode* node : nodes)
        if (!communicator->add_EndPoint(node))
            error(ERR_INTERNAL, engine_->rank, "an end-point of another network was given");
    return communicator;
}

CommunicationNode* Network::get_EndPoint(Rank rank) const
{
    Engine::Hold hold(*engine_);
    auto found = engine_->end_points.find(rank);
    return found == engine_->end_points.end() ? NULL : found->second;
}

void Internal::wait_for_end()
{
    sapwood_error_t failure;
    if (sapwood_serve(&failure) != SAPWOOD_OK)
        network.error(code_of(failure), rank, "%s", failure.text);
    ended = true;
}

/* Has a stream known by its number, which it gets when it is opened. */
int Engine::keep(Stream& stream)
{
    StreamContents& contents = stream.contents();
    if (contents.is_closed || (is_front_end() && open(contents) != 0))
        return -1;
    streams[contents.id] = &stream;
    return 0;
}

}  // namespace MRN
