/*
 * Round trips in turns, as `sapwood bench bindings` asks for them: a line on standard input with a
 * number of round trips, and a line on standard output with the nanoseconds that each took.
 */
#ifndef TURNS_HPP
#define TURNS_HPP

#include <chrono>
#include <cstdio>
#include <vector>

enum { TURN_NUMBERS = 1 << 20 };

/* Calls `ask` with one number after another until the input ends; gives whether all went well. */
template <class Ask> bool take_turns(Ask ask)
{
    std::vector<long long> times;
    int number = 0;
    for (int rounds; scanf("%d", &rounds) == 1;) {
        times.clear();
        for (int round = 0; round < rounds; round++) {
            auto before = std::chrono::steady_clock::now();
            if (!ask(number))
                return false;
            std::chrono::nanoseconds time = std::chrono::steady_clock::now() - before;
            times.push_back(time.count());
            number = (number + 1) % TURN_NUMBERS;
        }
        for (long long time : times)
            printf("%lld ", time);
        printf("\n");
        fflush(stdout);
    }
    return true;
}

#endif
