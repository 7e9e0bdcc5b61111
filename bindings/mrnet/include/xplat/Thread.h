/*
 * Threads.
 */
#ifndef XPLAT_THREAD_H
#define XPLAT_THREAD_H

namespace XPlat {

class Thread {
  public:
    typedef void* (*Func)(void* data);
    typedef unsigned long Id;

    /* Each that gives an int gives 0, or the number of a system error. */
    static int Create(Func function, void* data, Id* id);
    static Id GetId();
    static int Join(Id id, void** result);
    static int Cancel(Id id);
    static void Exit(void* result);
};

}  // namespace XPlat

#endif
