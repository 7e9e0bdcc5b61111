/* Which thread has which place in the table; see activity.h. */
#define _GNU_SOURCE
#include "activity.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "observe.h"

_Thread_local struct sapwood_activity *sapwood_activity __attribute__((tls_model("initial-exec")));

/* Of threads for which the table has no place. */
static struct sapwood_activity unseen;

static pthread_key_t key;
static bool has_key;

static void give_back(void *place)
{
    struct sapwood_activity *activity = place;
    SAPWOOD_TELL(activity->call, 0);
    SAPWOOD_TELL(activity->region, 0);
    atomic_store_explicit(&activity->thread, 0, memory_order_release);
    sapwood_activity = NULL;
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, give_back) == 0;
}

struct sapwood_activity *sapwood_activity_take(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    uint32_t thread = (uint32_t)syscall(SYS_gettid);
    for (int place = 0; place < SAPWOOD_ACTIVITIES; place++) {
        struct sapwood_activity *activity = &sapwood_table->activities[place];
        uint32_t none = 0;
        if (!atomic_compare_exchange_strong(&activity->thread, &none, thread))
            continue;
        SAPWOOD_TELL(activity->since, sapwood_ticks());
        if (has_key)
            pthread_setspecific(key, activity);
        return sapwood_activity = activity;
    }
    return sapwood_activity = &unseen;
}
