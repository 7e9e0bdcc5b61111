/* Start and end of the bypass; see life.h. */
#define _GNU_SOURCE
#include "life.h"

#include <pthread.h>

#include "account.h"
#include "communicator.h"
#include "note.h"
#include "presence.h"
#include "types.h"
#include "wait.h"

_Atomic bool bypass_active;
static bool announced;
static const struct bypass_segment *world_segment;

/* A forked child shares the memory but is not a rank. */
static void become_a_child(void)
{
    atomic_store(&bypass_active, false);
}

void bypass_init_begins(void)
{
    bypass_calls_open();
    bypass_settings_read();
    announced = bypass_settings.kinds != 0 && bypass_presence_announce();
}

void bypass_init_ends(bool succeeded)
{
    int rank = -1;
    if (succeeded && announced)
        bypass_calls.Comm_rank(bypass_calls.comm_world, &rank);
    if (rank < 0 || rank != bypass_presence_rank()) {
        bypass_presence_withdraw();
        return;
    }
    pthread_atfork(NULL, NULL, become_a_child);
    bypass_types_learn();
    bypass_wait_prepare();
    bypass_hops_find();
    world_segment = bypass_communicators_begin();
    atomic_store(&bypass_active, true);
}

void bypass_finalize(void)
{
    int rank = 0, size = 0, initialized = 0;
    bool was_active = atomic_exchange(&bypass_active, false);
    bypass_calls.Initialized(&initialized);
    if (!initialized || !bypass_settings_ask()) {
        bypass_presence_withdraw();
        return;
    }
    bypass_calls.Comm_rank(bypass_calls.comm_world, &rank);
    bypass_calls.Comm_size(bypass_calls.comm_world, &size);
    if (was_active && world_segment != NULL) {
        world_segment->accounts[rank] = bypass_account;
        /* Every rank that has reached this has written its counters. */
        bypass_calls.Barrier(bypass_calls.comm_world);
    }
    if (rank == 0)
        bypass_account_tell(was_active ? world_segment : NULL, bypass_lateness(), rank, size);
    bypass_presence_withdraw();
}
