/*
 * Mutexes, monitors, and what is done once.
 */
#include <pthread.h>

#include "../../lightweight/xplat/locks.h"
#include "xplat/Monitor.h"
#include "xplat/Mutex.h"
#include "xplat/Once.h"

namespace XPlat {

class Mutex::Data {
  public:
    Data() : lock(mrn_lock_new()) {}
    ~Data() { mrn_lock_free(lock); }

    mrn_lock* lock;
};

Mutex::Mutex() : data_(new Data) {}

Mutex::~Mutex()
{
    delete data_;
}

int Mutex::Lock()
{
    return mrn_lock_take(data_->lock);
}

int Mutex::Unlock()
{
    return mrn_lock_leave(data_->lock);
}

class Monitor::Data {
  public:
    Data() : lock(mrn_lock_new()) {}
    ~Data() { mrn_lock_free(lock); }

    mrn_lock* lock;
};

Monitor::Monitor() : data_(new Data) {}

Monitor::~Monitor()
{
    delete data_;
}

int Monitor::Lock()
{
    return mrn_lock_take(data_->lock);
}

int Monitor::TryLock()
{
    return mrn_lock_try(data_->lock);
}

int Monitor::Unlock()
{
    return mrn_lock_leave(data_->lock);
}

int Monitor::RegisterCondition(unsigned int condition)
{
    return mrn_lock_register(data_->lock, condition);
}

int Monitor::WaitOnCondition(unsigned int condition)
{
    return mrn_lock_wait(data_->lock, condition, MRN_NO_LIMIT);
}

int Monitor::TimedWaitOnCondition(unsigned int condition, int milliseconds)
{
    return mrn_lock_wait(data_->lock, condition, milliseconds < 0 ? 0 : milliseconds);
}

int Monitor::SignalCondition(unsigned int condition)
{
    return mrn_lock_wake(data_->lock, condition, 0);
}

int Monitor::BroadcastCondition(unsigned int condition)
{
    return mrn_lock_wake(data_->lock, condition, 1);
}

class Once::Data {
  public:
    Data() : once(PTHREAD_ONCE_INIT) {}

    pthread_once_t once;
};

Once::Once() : data_(new Data) {}

Once::~Once()
{
    delete data_;
}

int Once::DoOnce(OnceFunc function)
{
    return pthread_once(&data_->once, function);
}

}  // namespace XPlat
