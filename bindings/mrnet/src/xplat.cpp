/*
 * libxplat: locks by the names that MRNet's tools use.
 */
#include <errno.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>

#include "xplat/Monitor.h"
#include "xplat/Mutex.h"

namespace XPlat {

class Mutex::Data {
  public:
    std::recursive_mutex mutex;
};

Mutex::Mutex() : data_(new Data) {}

Mutex::~Mutex()
{
    delete data_;
}

int Mutex::Lock()
{
    data_->mutex.lock();
    return 0;
}

int Mutex::Unlock()
{
    data_->mutex.unlock();
    return 0;
}

class Monitor::Data {
  public:
    std::condition_variable_any* condition(unsigned int number)
    {
        auto found = conditions.find(number);
        return found == conditions.end() ? NULL : found->second.get();
    }

    std::recursive_mutex mutex;
    std::map<unsigned int, std::unique_ptr<std::condition_variable_any>> conditions;
};

Monitor::Monitor() : data_(new Data) {}

Monitor::~Monitor()
{
    delete data_;
}

int Monitor::Lock()
{
    data_->mutex.lock();
    return 0;
}

int Monitor::TryLock()
{
    return data_->mutex.try_lock() ? 0 : EBUSY;
}

int Monitor::Unlock()
{
    data_->mutex.unlock();
    return 0;
}

int Monitor::RegisterCondition(unsigned int condition)
{
    auto& place = data_->conditions[condition];
    if (!place)
        place.reset(new std::condition_variable_any);
    return 0;
}

int Monitor::WaitOnCondition(unsigned int condition)
{
    std::condition_variable_any* found = data_->condition(condition);
    if (found == NULL)
        return -1;
    found->wait(data_->mutex);
    return 0;
}

int Monitor::TimedWaitOnCondition(unsigned int condition, int milliseconds)
{
    std::condition_variable_any* found = data_->condition(condition);
    if (found == NULL)
        return -1;
    std::chrono::milliseconds time(milliseconds);
    return found->wait_for(data_->mutex, time) == std::cv_status::timeout ? ETIMEDOUT : 0;
}

int Monitor::SignalCondition(unsigned int condition)
{
    std::condition_variable_any* found = data_->condition(condition);
    if (found == NULL)
        return -1;
    found->notify_one();
    return 0;
}

int Monitor::BroadcastCondition(unsigned int condition)
{
    std::condition_variable_any* found = data_->condition(condition);
    if (found == NULL)
        return -1;
    found->notify_all();
    return 0;
}

}  // namespace XPlat
