/*
 * xplat/Monitor.h by itself: two threads hand a turn to each other.
 */
#include "xplat/Monitor.h"

#include <cerrno>
#include <thread>

#include "../check.h"

static XPlat::Monitor monitor;
static int turn = 0;
static const int TURNS = 1000;
enum { CHANGED = 7, NEVER = 8, ALL = 9 };

static int take_turns(int mine)
{
    for (int round = 0; round < TURNS; round++) {
        DEMAND(monitor.Lock() == 0);
        while (turn % 2 != mine)
            DEMAND(monitor.WaitOnCondition(CHANGED) == 0);
        turn++;
        DEMAND(monitor.SignalCondition(CHANGED) == 0 && monitor.Unlock() == 0);
    }
    return 0;
}

static int wait_for_all(int* ready, bool* is_open)
{
    DEMAND(monitor.Lock() == 0);
    ++*ready;
    DEMAND(monitor.BroadcastCondition(ALL) == 0);
    while (!*is_open)
        DEMAND(monitor.WaitOnCondition(ALL) == 0);
    DEMAND(monitor.Unlock() == 0);
    return 0;
}

static int open_for_all()
{
    int ready = 0, lines[3];
    bool is_open = false;
    std::thread threads[3];
    for (int at = 0; at < 3; at++)
        threads[at] = std::thread([&, at] { lines[at] = wait_for_all(&ready, &is_open); });
    DEMAND(monitor.Lock() == 0);
    while (ready < 3)
        DEMAND(monitor.WaitOnCondition(ALL) == 0);
    is_open = true;
    DEMAND(monitor.BroadcastCondition(ALL) == 0 && monitor.Unlock() == 0);
    for (std::thread& thread : threads)
        thread.join();
    for (int line : lines)
        DEMAND(line == 0);
    return 0;
}

int main()
{
    DEMAND(monitor.WaitOnCondition(CHANGED) == -1 && monitor.SignalCondition(CHANGED) == -1);
    DEMAND(monitor.BroadcastCondition(CHANGED) == -1);
    DEMAND(monitor.TimedWaitOnCondition(CHANGED, 1) == -1);
    DEMAND(monitor.RegisterCondition(CHANGED) == 0 && monitor.RegisterCondition(CHANGED) == 0);
    DEMAND(monitor.RegisterCondition(NEVER) == 0 && monitor.RegisterCondition(ALL) == 0);
    DEMAND(monitor.Unlock() == EPERM);
    int other = -1;
    std::thread thread([&other] { other = take_turns(1); });
    ALSO(take_turns(0));
    thread.join();
    DEMAND(other == 0 && turn == 2 * TURNS);
    DEMAND(monitor.TryLock() == 0 && monitor.Lock() == 0 && monitor.Unlock() == 0);
    std::thread([&other] { other = monitor.TryLock(); }).join();
    DEMAND(other == EBUSY);
    DEMAND(monitor.TimedWaitOnCondition(NEVER, 1) == ETIMEDOUT);
    DEMAND(monitor.TimedWaitOnCondition(NEVER, -1) == ETIMEDOUT && monitor.Unlock() == 0);
    return open_for_all();
}
