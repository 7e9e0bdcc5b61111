/*
 * xplat/Once.h by itself: of several threads one does it, and no other goes on before it is done.
 */
#include "xplat/Once.h"

#include <atomic>
#include <thread>

#include "../check.h"

static std::atomic<int> times(0);

extern "C" void count()
{
    times++;
}

int main()
{
    XPlat::Once once, other;
    std::atomic<int> good(0);
    std::thread threads[4];
    OnceFunc function = count;
    for (std::thread& thread : threads)
        thread = std::thread([&] { good += once.DoOnce(function) == 0 && times == 1; });
    for (std::thread& thread : threads)
        thread.join();
    DEMAND(good == 4 && times == 1);
    DEMAND(other.DoOnce(function) == 0 && times == 2);
    return 0;
}
