/*
 * A lock with numbered conditions that threads wait for.
 */
#ifndef XPLAT_MONITOR_H
#define XPLAT_MONITOR_H

#include <cstdlib>

namespace XPlat {

class Monitor {
  public:
    Monitor();
    virtual ~Monitor();

    /* Each gives 0, or the number of a system error; -1 for a condition that is not registered. */
    virtual int Lock();
    virtual int TryLock();
    virtual int Unlock();
    virtual int RegisterCondition(unsigned int condition);
    virtual int WaitOnCondition(unsigned int condition);
    virtual int TimedWaitOnCondition(unsigned int condition, int milliseconds);
    virtual int SignalCondition(unsigned int condition);
    virtual int BroadcastCondition(unsigned int condition);

    class Data;

  private:
    Monitor(const Monitor&);
    Monitor& operator=(const Monitor&);

    Data* data_;
};

}  // namespace XPlat

#endif
