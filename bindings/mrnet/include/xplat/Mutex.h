/*
 * A lock that its holder may take again.
 */
#ifndef XPLAT_MUTEX_H
#define XPLAT_MUTEX_H

namespace XPlat {

class Mutex {
  public:
    Mutex();
    virtual ~Mutex();

    /* 0, or the number of a system error. */
    virtual int Lock();
    virtual int Unlock();

    class Data;

  private:
    Mutex(const Mutex&);
    Mutex& operator=(const Mutex&);

    Data* data_;
};

}  // namespace XPlat

#endif
