/*
 * A value that threads read and add to, one at a time.
 */
#ifndef XPLAT_ATOMIC_H
#define XPLAT_ATOMIC_H

#include "xplat/Mutex.h"

namespace XPlat {

template <class T>
class Atomic {
  public:
    Atomic(T value) : value_(value) {}

    T Get() const
    {
        mutex_.Lock();
        T value = value_;
        mutex_.Unlock();
        return value;
    }

    void Add(T more)
    {
        mutex_.Lock();
        value_ += more;
        mutex_.Unlock();
    }

  private:
    mutable Mutex mutex_;
    T value_;
};

}  // namespace XPlat

#endif
