/* Spinning, sleeping and waking; see wait.h. */
#define _GNU_SOURCE
#include "wait.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "account.h"
#include "calls.h"

/* Beyond this, a sleep and its wake-up cost less than the spin; longer where no other rank of
 * the communicator needs the processor. */
#define SPIN_NS_MAX UINT64_C(5000)
#define SPIN_NS_MAX_ALONE UINT64_C(50000)
#define SLEEP_NS_FIRST UINT64_C(200000)
#define SLEEP_NS_MAX UINT64_C(2000000)
/* An idle call into MPI's progress takes less; a longer one has moved data, and more may follow. */
#define POKE_NS_IDLE UINT64_C(3000)
#define GIVE_UP_NS UINT64_C(1000000000)
#define PROGRESS_NS UINT64_C(20000000)

uint64_t bypass_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void sleep_on(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
    struct timespec limit = {.tv_sec = 0, .tv_nsec = (long)ns};
    syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
}

static int tag_max = 32767;

void bypass_wait_prepare(void)
{
    int *most = NULL, found = 0;
    bypass_calls.Comm_get_attr(bypass_calls.comm_world, MPI_TAG_UB, &most, &found);
    if (found)
        tag_max = *most;
}

static void poke(void)
{
    /* A probe that finds something need not make progress, nor one of MPI_COMM_SELF: so it is of
     * MPI_COMM_WORLD and for the tag that programs use least. */
    int flag = 0;
    bypass_count(&bypass_account.pokes, 1);
    bypass_calls.Iprobe(MPI_ANY_SOURCE, tag_max, bypass_calls.comm_world, &flag, MPI_STATUS_IGNORE);
}

void bypass_progress_sometimes(uint64_t now_ns)
{
    static _Thread_local uint64_t last_ns __attribute__((tls_model("initial-exec")));
    if (now_ns - last_ns < PROGRESS_NS)
        return;
    last_ns = now_ns;
    poke();
}

static bool reached(_Atomic uint32_t *word, uint32_t wanted)
{
    return atomic_load_explicit(word, memory_order_acquire) == wanted;
}

static bool spin(_Atomic uint32_t *word, uint32_t wanted, uint64_t begin_ns, uint64_t budget_ns, bool crowded)
{
    while (!reached(word, wanted)) {
        if (bypass_now_ns() - begin_ns >= budget_ns)
            return false;
        if (crowded)
            sched_yield();
    }
    return true;
}

static bool sleep_until(_Atomic uint32_t *word, uint32_t wanted, bypass_give_up *give_up, void *argument)
{
    uint64_t sleep_ns = SLEEP_NS_FIRST, asked_ns = bypass_now_ns();
    for (;;) {
        uint32_t value = atomic_load(word);
        if (value == wanted)
            return true;
        bypass_count(&bypass_account.sleeps, 1);
        sleep_on(word, value, sleep_ns);
        if (reached(word, wanted))
            return true;
        uint64_t before_ns = bypass_now_ns();
        poke();
        uint64_t after_ns = bypass_now_ns();
        sleep_ns = sleep_ns * 2 < SLEEP_NS_MAX ? sleep_ns * 2 : SLEEP_NS_MAX;
        if (after_ns - before_ns > POKE_NS_IDLE)
            sleep_ns = SLEEP_NS_FIRST / 10;
        if (after_ns - asked_ns > GIVE_UP_NS) {
            asked_ns = after_ns;
            if (give_up != NULL && give_up(argument))
                return false;
        }
    }
}

bool bypass_wait(_Atomic uint32_t *word, uint32_t wanted, _Atomic uint32_t *sleepers,
                 struct bypass_patience *patience, bypass_give_up *give_up, void *argument)
{
    if (reached(word, wanted))
        return true;
    uint64_t begin_ns = bypass_now_ns();
    uint64_t most_ns = patience->crowded ? SPIN_NS_MAX : SPIN_NS_MAX_ALONE;
    uint64_t budget_ns = patience->usual_ns < most_ns ? most_ns : 0;
    bool came = budget_ns > 0 && spin(word, wanted, begin_ns, budget_ns, patience->crowded);
    if (!came) {
        atomic_fetch_add(sleepers, 1);
        came = sleep_until(word, wanted, give_up, argument);
        atomic_fetch_sub(sleepers, 1);
    }
    uint64_t waited_ns = bypass_now_ns() - begin_ns;
    patience->usual_ns = (patience->usual_ns * 7 + waited_ns) / 8;
    bypass_count(&bypass_account.wait_ns, waited_ns);
    return came;
}

void bypass_tell(_Atomic uint32_t *word, uint32_t value, _Atomic uint32_t *sleepers)
{
    /* Sequentially consistent on both sides: either the sleeper sees the value, or we the sleeper. */
    atomic_store(word, value);
    if (atomic_load(sleepers) != 0)
        syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
