/* Which thread has which place in the table, and the time in which all threads are in MPI; see activity.h.
 *
 * A rank of which several threads have called MPI is in MPI while all of them that live are: one that computes may
 * go on to any call. Such time ends when the first of them leaves, and has begun when the last of them entered,
 * which their activities tell. So a thread adds it up when it leaves, and nothing is done when one enters. Threads
 * leave one after another, so that one that is seen inside stays there; where one is outside already, there is
 * nothing to add, and no lock is needed. What settings leave out is in it: of a rank that leaves out anything no
 * reader tells a share of MPI.
 */
#define _GNU_SOURCE
#include "activity.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "functions.h"
#include "observe.h"

#define READ(word) atomic_load_explicit(&(word), memory_order_relaxed)

/* How a thread has come that calls MPI. */
enum { ALONE = 1, BESIDE = 2 };

_Thread_local struct sapwood_thread sapwood_thread __attribute__((tls_model("initial-exec")));
_Atomic bool sapwood_are_several;

/* Of threads for which the table has no place. */
static struct sapwood_activity unseen;
static uint32_t unseen_threads;

/* Held while a thread that calls MPI comes, leaves a call while all are in one, or ends. */
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_key_t key;
static bool has_key;

/* Since when all threads are in MPI, in ticks; 0 if one of them is not, or there is none. */
static uint64_t all_inside_since(void)
{
    uint64_t joined = READ(sapwood_table->header.joined), since = 0;
    for (int place = 0; place < SAPWOOD_ACTIVITIES; place++) {
        const struct sapwood_activity *activity = &sapwood_table->activities[place];
        if (READ(activity->has_called) == 0)
            continue;
        if (atomic_load_explicit(&activity->call, memory_order_acquire) == 0)
            return 0;
        uint64_t begun = READ(activity->since);
        since = begun > since ? begun : since;
    }
    return since == 0 || since > joined ? since : joined;
}

/* The time of the calls that the slots have. */
static uint64_t counted_ns(void)
{
    uint32_t used = atomic_load_explicit(&sapwood_table->header.slots_used, memory_order_acquire);
    uint64_t ns = 0;
    for (uint32_t i = 0; i < used; i++) {
        const struct sapwood_slot *slot = &sapwood_table->slots[i];
        uint64_t event = READ(slot->key), function = event >> 8;
        bool is_initialisation = function == SAPWOOD_ID_MPI_INIT || function == SAPWOOD_ID_MPI_INIT_THREAD;
        if ((event & SAPWOOD_KEY_REGION) == 0 && !is_initialisation)
            ns += READ(slot->time_ns);
    }
    return ns;
}

/* Callers hold the lock. What the slots have before the first time is of the thread that was alone: the others
 * come here before they count a call. */
static void add_together(uint64_t ticks)
{
    struct sapwood_header *header = &sapwood_table->header;
    if (READ(header->is_together) == 0)
        SAPWOOD_TELL(header->together_ns, counted_ns());
    sapwood_add(&header->together_ns, sapwood_ns(ticks), false);
    atomic_store_explicit(&header->is_together, 1, memory_order_release);
}

/* Whether a thread's call began while it was the only one: a thread that comes beside others may enter its first call
 * before it is one of them. */
static bool was_alone(const struct sapwood_activity *own)
{
    return READ(own->has_called) == ALONE && READ(own->since) < READ(sapwood_table->header.several_since);
}

/* Of a thread's call that ends now, the time in which all threads were in MPI. Callers hold the lock. */
static uint64_t together_until(const struct sapwood_activity *own, uint64_t end)
{
    uint64_t since = all_inside_since(), several = READ(sapwood_table->header.several_since);
    uint64_t ticks = since != 0 && end > since ? end - since : 0;
    /* The first thread was in this call when the second one came; before, it was all there were. */
    return was_alone(own) ? ticks + (several - READ(own->since)) : ticks;
}

void sapwood_leave_threads(struct sapwood_activity *own, uint64_t ticks)
{
    const struct sapwood_header *header = &sapwood_table->header;
    /* MPI_Finalize is counted before it is entered. */
    bool is_seen = own != &unseen && READ(own->call) != 0;
    if (atomic_load_explicit(&header->is_together, memory_order_acquire) != 0 &&
        (!is_seen || (!was_alone(own) && all_inside_since() == 0))) {
        sapwood_stop(own, ticks);
        return;
    }
    pthread_mutex_lock(&threads_lock);
    add_together(is_seen ? together_until(own, READ(own->since) + ticks) : 0);
    sapwood_stop(own, ticks);
    pthread_mutex_unlock(&threads_lock);
}

static void give_back(void *place)
{
    struct sapwood_activity *activity = place;
    pthread_mutex_lock(&threads_lock);
    SAPWOOD_TELL(activity->call, 0);
    SAPWOOD_TELL(activity->region, 0);
    /* Until now it was outside. */
    if (READ(activity->has_called) != 0 && READ(sapwood_table->header.several_since) != 0)
        SAPWOOD_TELL(sapwood_table->header.joined, sapwood_ticks());
    SAPWOOD_TELL(activity->has_called, 0);
    atomic_store_explicit(&activity->thread, 0, memory_order_release);
    pthread_mutex_unlock(&threads_lock);
    sapwood_thread.activity = NULL;
    sapwood_thread.place = NULL;
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, give_back) == 0;
}

struct sapwood_activity *sapwood_activity_place(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (sapwood_thread.place != NULL)
        return sapwood_thread.place;
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
        return sapwood_thread.place = activity;
    }
    return sapwood_thread.place = &unseen;
}

/* Threads that have called MPI and live; those without a place do not tell when they end. */
static uint32_t threads_now(void)
{
    uint32_t threads = unseen_threads;
    for (int place = 0; place < SAPWOOD_ACTIVITIES; place++)
        threads += READ(sapwood_table->activities[place].has_called) != 0;
    return threads;
}

/* A thread calls MPI that has not before. Callers hold the lock. */
static void thread_comes(struct sapwood_activity *activity)
{
    struct sapwood_header *header = &sapwood_table->header;
    /* Before it is one of them. */
    bool were_several = READ(header->several_since) != 0;
    uint64_t since = were_several ? all_inside_since() : 0;
    if (activity == &unseen)
        unseen_threads++;
    else
        SAPWOOD_TELL(activity->has_called, threads_now() == 0 ? ALONE : BESIDE);
    uint32_t threads = threads_now();
    if (threads > READ(header->threads_most))
        SAPWOOD_TELL(header->threads_most, threads);
    if (threads < 2)
        return;
    uint64_t now = sapwood_ticks();
    if (since != 0 && now > since)
        add_together(now - since);
    SAPWOOD_TELL(header->joined, now);
    if (were_several)
        return;
    SAPWOOD_TELL(header->several_since, now);
    atomic_store(&sapwood_are_several, true);
    sapwood_phase_leaves_one_thread();
}

struct sapwood_activity *sapwood_activity_take(void)
{
    struct sapwood_activity *activity = sapwood_activity_place();
    pthread_mutex_lock(&threads_lock);
    thread_comes(activity);
    pthread_mutex_unlock(&threads_lock);
    return sapwood_thread.activity = activity;
}

void sapwood_activity_forked(void)
{
    threads_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    /* Its place is that of the parent's thread, in memory that both have: it gives none back when it ends. */
    if (has_key)
        pthread_setspecific(key, NULL);
}
