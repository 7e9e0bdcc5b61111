/*
 * xplat/Mutex.h by itself: nothing is lost of what threads add under it.
 */
#include "xplat/Mutex.h"

#include <cerrno>
#include <thread>

#include "../check.h"

int main()
{
    const int each = 20000;
    XPlat::Mutex mutex;
    long sum = 0;
    auto add = [&] {
        for (int at = 0; at < each; at++) {
            mutex.Lock();
            mutex.Lock();
            sum = sum + 1;
            mutex.Unlock();
            mutex.Unlock();
        }
    };
    std::thread one(add), other(add);
    one.join();
    other.join();
    DEMAND(sum == 2 * each);
    DEMAND(mutex.Unlock() == EPERM && mutex.Lock() == 0 && mutex.Unlock() == 0);
    return 0;
}
