/* The table of requests; see requests.h. */
#include "requests.h"

#include <pthread.h>
#include <string.h>

#include "places.h"

enum { BUCKET_BITS = 12, BUCKETS = 1 << BUCKET_BITS };

static struct sapwood_request requests[SAPWOOD_REQUESTS];
static uint32_t buckets[BUCKETS];
static uint32_t free_request, requests_used;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

_Atomic uint32_t sapwood_requests_followed;
uint32_t sapwood_requests_generation;

static bool is_contended(void)
{
    return __builtin_expect((sapwood_table->header.flags & SAPWOOD_FLAG_THREAD_MULTIPLE) != 0, 0);
}

void sapwood_requests_lock(void)
{
    if (is_contended())
        pthread_mutex_lock(&mutex);
}

void sapwood_requests_unlock(void)
{
    if (is_contended())
        pthread_mutex_unlock(&mutex);
}

static uint32_t *bucket_of(uint64_t handle)
{
    return &buckets[handle * UINT64_C(0x9E3779B97F4A7C15) >> (64 - BUCKET_BITS)];
}

/* Callers hold the lock, so that nothing comes between. */
static void add_followed(uint32_t amount)
{
    uint32_t followed = atomic_load_explicit(&sapwood_requests_followed, memory_order_relaxed);
    atomic_store_explicit(&sapwood_requests_followed, followed + amount, memory_order_relaxed);
}

bool sapwood_requests_have_room(void)
{
    return free_request != 0 || requests_used < SAPWOOD_REQUESTS;
}

uint32_t sapwood_request_found(uint64_t handle)
{
    for (uint32_t at = *bucket_of(handle); at != 0; at = requests[at - 1].next)
        if (requests[at - 1].handle == handle)
            return at;
    return 0;
}

struct sapwood_request *sapwood_request_at(uint32_t number)
{
    return &requests[number - 1];
}

static void unlink_request(uint32_t number)
{
    uint32_t *link = bucket_of(requests[number - 1].handle);
    while (*link != number)
        link = &requests[*link - 1].next;
    *link = requests[number - 1].next;
}

/* The place of its communicator is not used again while it is followed. */
static void name_place(const struct sapwood_request *request, int amount)
{
    if (request->space != NULL)
        sapwood_place_named(request->space, amount);
}

/* It is not followed any more. */
static void let_go(const struct sapwood_request *request)
{
    if (request->kind == SAPWOOD_PERSISTENT_COLLECTIVE && request->space != NULL)
        sapwood_persistent_space_left(request->space);
    name_place(request, -1);
}

void sapwood_request_remove(uint32_t number)
{
    let_go(&requests[number - 1]);
    if (!requests[number - 1].is_replaced)
        unlink_request(number);
    requests[number - 1] = (struct sapwood_request){.next = free_request};
    free_request = number;
    add_followed(UINT32_MAX);
}

void sapwood_request_lost(const struct sapwood_request *request)
{
    if (request->kind == SAPWOOD_RECEIVE_WILD)
        sapwood_events_lose_messages();
    if (sapwood_request_is_receive(request) && request->is_active && request->function != 0)
        sapwood_add(&sapwood_table->header.untracked, 1, is_contended());
}

/* Makes room for a new request of a handle that is followed already. */
static void replace(uint32_t number)
{
    struct sapwood_request *before = sapwood_request_at(number);
    if (before->is_waited) {
        /* Another thread's call has completed it and has not come back yet. */
        unlink_request(number);
        before->is_replaced = true;
    } else {
        /* It has ended unseen. */
        sapwood_request_lost(before);
        sapwood_request_remove(number);
    }
}

static void link_request(uint32_t number, struct sapwood_request request)
{
    uint32_t *bucket = bucket_of(request.handle);
    request.next = *bucket;
    requests[number - 1] = request;
    *bucket = number;
}

void sapwood_request_add(struct sapwood_request request)
{
    /* Another thread may have paused counting since this call began. */
    if (!sapwood_is_counting() && !sapwood_request_is_persistent(&request))
        return;
    uint32_t number = sapwood_request_found(request.handle);
    if (number != 0)
        replace(number);
    number = free_request;
    if (number != 0)
        free_request = requests[number - 1].next;
    else if (requests_used < SAPWOOD_REQUESTS)
        number = ++requests_used;
    if (number != 0) {
        link_request(number, request);
        name_place(&request, 1);
        add_followed(1);
        return;
    }
    if (!sapwood_request_is_collective(&request) && request.space != NULL)
        sapwood_events_lose_messages();
    if (request.function != 0)
        sapwood_add(&sapwood_table->header.untracked, 1, is_contended());
}

void sapwood_requests_forget(void)
{
    sapwood_requests_lock();
    uint32_t kept = 0;
    memset(buckets, 0, sizeof buckets);
    for (uint32_t i = 0; i < requests_used; i++) {
        struct sapwood_request request = requests[i];
        if (!sapwood_request_is_persistent(&request) || request.is_replaced) {
            let_go(&request);
            continue;
        }
        request.is_active = request.is_waited = false;
        link_request(++kept, request);
    }
    free_request = 0;
    requests_used = kept;
    sapwood_requests_generation++;
    atomic_store_explicit(&sapwood_requests_followed, kept, memory_order_relaxed);
    sapwood_requests_unlock();
}
