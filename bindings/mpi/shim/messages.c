/* Channels and requests; see messages.h. */
#include "messages.h"

#include <pthread.h>

enum {
    CHANNEL_BITS = 13,
    CHANNELS = 1 << CHANNEL_BITS,
    CHANNEL_TRIES_MAX = 64,
    REQUESTS = 4096,
    REQUEST_BUCKETS = 1024,
    STATUSES = 64,
    MEMBERS_MAX = 255,
};

enum kind { COLLECTIVE, RECEIVE, RECEIVE_WILD, PERSISTENT_SEND, PERSISTENT_RECEIVE };

/* Messages of one communicator, peer and tag, in one direction. MPI keeps the order of those that one
 * thread sends or receives; a channel that a second one uses has no order, and is not counted on. */
struct channel {
    uint32_t owner; /* number of the space times 2, plus 1 for sends, plus 1; 0 free */
    int32_t peer;
    int32_t tag;
    uint32_t count;
    uint32_t thread; /* place of its thread's activity, plus 1; SEVERAL once there are two */
};
#define SEVERAL UINT32_MAX

/* A request that has not completed. */
struct request {
    uint64_t handle;
    struct sapwood_space *space;
    uint32_t next;   /* in its bucket or the free list: number plus 1 */
    uint32_t waited; /* the next one of the same call, likewise */
    uint32_t sequence;
    uint32_t posted; /* how many receives had been posted on the communicator with this one */
    int32_t index;   /* its place in that call */
    int32_t peer;
    int32_t tag;
    uint8_t kind;
    bool is_sure;
    bool is_waited;   /* a thread is in a call that completes it, and will look at it */
    bool is_replaced; /* MPI has given its handle to another request meanwhile: it is in no bucket */
};

static struct channel channels[CHANNELS];
static struct request requests[REQUESTS];
static uint32_t buckets[REQUEST_BUCKETS];
static uint32_t free_request, requests_used;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

#define READ(word) atomic_load_explicit(&(word), memory_order_relaxed)
#define WRITE(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)

static bool is_contended(void)
{
    return __builtin_expect((sapwood_table->header.flags & SAPWOOD_FLAG_THREAD_MULTIPLE) != 0, 0);
}

/* Channels and requests are followed without a lock where one thread at a time calls MPI. */
static void lock(void)
{
    if (is_contended())
        pthread_mutex_lock(&mutex);
}

static void unlock(void)
{
    if (is_contended())
        pthread_mutex_unlock(&mutex);
}

static bool messages_are_told(void)
{
    return (READ(sapwood_recording) & SAPWOOD_EVENTS_MESSAGES) != 0 &&
           (READ(sapwood_events->header.state) & SAPWOOD_EVENTS_MESSAGES_LOST) == 0;
}

static void note_unsure(uint64_t receives)
{
    if (READ(sapwood_recording) & SAPWOOD_EVENTS_RECORDING)
        sapwood_add(&sapwood_events->header.unsure, receives, is_contended());
}

/* Threads that have no place in the table are not told apart. */
static uint32_t thread_number(void)
{
    uintptr_t first = (uintptr_t)sapwood_table->activities, own = (uintptr_t)sapwood_activity_own();
    uintptr_t place = (own - first) / sizeof(struct sapwood_activity);
    return place < SAPWOOD_ACTIVITIES ? (uint32_t)place + 1 : SEVERAL;
}

/* The number of the next message of a channel; 0 when it is not known. Callers hold the lock. */
static uint32_t next_message(const struct sapwood_space *space, bool is_send, int peer, int tag)
{
    uint32_t owner = ((uint32_t)(space - sapwood_events->spaces) << 1 | is_send) + 1;
    uint64_t mixed = ((uint64_t)owner << 32 ^ (uint32_t)peer) * UINT64_C(0x9E3779B97F4A7C15) + (uint32_t)tag;
    uint32_t place = (uint32_t)(mixed * UINT64_C(0xD6E8FEB86659FD93) >> (64 - CHANNEL_BITS));
    for (int tries = 0; tries < CHANNEL_TRIES_MAX; tries++, place = (place + 1) & (CHANNELS - 1)) {
        struct channel *channel = &channels[place];
        if (channel->owner == 0)
            *channel = (struct channel){owner, peer, tag, 0, thread_number()};
        if (channel->owner != owner || channel->peer != peer || channel->tag != tag)
            continue;
        if (is_contended() && channel->thread != thread_number())
            channel->thread = SEVERAL;
        return channel->thread == SEVERAL ? 0 : ++channel->count;
    }
    sapwood_events_lose_messages();
    return 0;
}

/* The space of a communicator whose messages are told; NULL for others. */
static struct sapwood_space *space_of(MPI_Comm comm)
{
    struct sapwood_space *space = sapwood_space_of(comm);
    bool is_known = READ(space->handle) == SAPWOOD_HANDLE(comm);
    return is_known && (space->flags & SAPWOOD_SPACE_BETWEEN) == 0 ? space : NULL;
}

static bool is_wild(int source, int tag)
{
    return source == MPI_ANY_SOURCE || tag == MPI_ANY_TAG;
}

static uint32_t *bucket_of(uint64_t handle)
{
    return &buckets[handle * UINT64_C(0x9E3779B97F4A7C15) >> 54];
}
static_assert(REQUEST_BUCKETS == 1 << 10, "a bucket is 10 bits of a product");

/* The number of a followed request plus 1; 0 for others. */
static uint32_t request_found(uint64_t handle)
{
    for (uint32_t at = *bucket_of(handle); at != 0; at = requests[at - 1].next)
        if (requests[at - 1].handle == handle)
            return at;
    return 0;
}

static void request_unlink(uint32_t number)
{
    uint32_t *link = bucket_of(requests[number - 1].handle);
    while (*link != number)
        link = &requests[*link - 1].next;
    *link = requests[number - 1].next;
}

static void request_remove(uint32_t number)
{
    if (!requests[number - 1].is_replaced)
        request_unlink(number);
    requests[number - 1].next = free_request;
    free_request = number;
}

/* Follows a request. Callers hold the lock. */
static void request_add(struct request request)
{
    uint32_t number = request_found(request.handle);
    if (number != 0 && requests[number - 1].is_waited) {
        /* Another thread's call has completed it and has not come back yet. */
        request_unlink(number);
        requests[number - 1].is_replaced = true;
    } else if (number != 0) {
        /* It has ended unseen. */
        if (requests[number - 1].kind == RECEIVE_WILD)
            sapwood_events_lose_messages();
        request_remove(number);
    }
    number = free_request;
    if (number != 0)
        free_request = requests[number - 1].next;
    else if (requests_used < REQUESTS)
        number = ++requests_used;
    if (number != 0) {
        uint32_t *bucket = bucket_of(request.handle);
        request.next = *bucket;
        requests[number - 1] = request;
        *bucket = number;
    } else if (request.kind != COLLECTIVE) {
        sapwood_events_lose_messages();
    }
}

MPI_Status *sapwood_readable(int source, int tag, MPI_Status *status)
{
    static _Thread_local MPI_Status own __attribute__((tls_model("initial-exec")));
    return status == MPI_STATUS_IGNORE && is_wild(source, tag) ? &own : status;
}

/* The number of bits of a size, and 1: what its messages are sorted by. */
static uint32_t size_class(uint64_t bytes)
{
    return bytes == 0 ? 1 : 65 - (uint32_t)__builtin_clzll(bytes);
}

void sapwood_message_sent(uint32_t function, uint32_t kind, MPI_Comm comm, int dest, int tag, uint64_t bytes,
                          uint64_t begin, uint64_t ticks)
{
    if (dest == MPI_PROC_NULL || !messages_are_told())
        return;
    const struct sapwood_space *space = space_of(comm);
    lock();
    uint32_t sequence = space == NULL ? 0 : next_message(space, true, dest, tag);
    unlock();
    if (sequence != 0)
        sapwood_record((struct sapwood_event_of_call){.begin = begin, .ticks = ticks, .space = space,
                                                      .function = function, .kind = kind,
                                                      .members = size_class(bytes), .sequence = sequence,
                                                      .peer = dest, .tag = tag});
}

void sapwood_message_received(uint32_t function, MPI_Comm comm, int source, int tag, const MPI_Status *status,
                              uint64_t begin, uint64_t ticks)
{
    if (source == MPI_PROC_NULL)
        return;
    struct sapwood_space *space = messages_are_told() ? space_of(comm) : NULL;
    if (space == NULL)
        return note_unsure(1);
    if (is_wild(source, tag)) {
        if (status == NULL || status == MPI_STATUS_IGNORE) {
            sapwood_events_lose_messages();
            return note_unsure(1);
        }
        source = status->MPI_SOURCE;
        tag = status->MPI_TAG;
    }
    lock();
    bool is_sure = READ(space->pending) == 0;
    WRITE(space->posted, READ(space->posted) + 1);
    uint32_t sequence = next_message(space, false, source, tag);
    unlock();
    if (!is_sure || sequence == 0)
        note_unsure(1);
    if (sequence != 0)
        sapwood_record((struct sapwood_event_of_call){.begin = begin, .ticks = ticks, .space = space,
                                                      .function = function, .kind = SAPWOOD_EVENT_RECEIVE,
                                                      .members = is_sure, .sequence = sequence, .peer = source,
                                                      .tag = tag});
}

void sapwood_message_posted(MPI_Comm comm, int source, int tag, MPI_Request handle)
{
    if (source == MPI_PROC_NULL)
        return;
    struct sapwood_space *space = messages_are_told() ? space_of(comm) : NULL;
    if (space == NULL)
        return note_unsure(1);
    lock();
    struct request request = {.handle = SAPWOOD_HANDLE(handle), .space = space, .peer = source, .tag = tag,
                              .kind = is_wild(source, tag) ? RECEIVE_WILD : RECEIVE,
                              .is_sure = READ(space->pending) == 0};
    request.posted = READ(space->posted) + 1;
    WRITE(space->posted, request.posted);
    if (request.kind == RECEIVE_WILD)
        WRITE(space->pending, READ(space->pending) + 1);
    else
        request.sequence = next_message(space, false, source, tag);
    bool is_known = request.kind == RECEIVE_WILD || request.sequence != 0;
    if (is_known)
        request_add(request);
    unlock();
    if (!is_known)
        note_unsure(1);
}

void sapwood_collective_followed(MPI_Comm comm, uint32_t sequence, int root, MPI_Request handle)
{
    struct sapwood_space *space = sapwood_space_of(comm);
    if (READ(space->handle) != SAPWOOD_HANDLE(comm))
        return;
    lock();
    request_add((struct request){.handle = SAPWOOD_HANDLE(handle), .space = space, .sequence = sequence,
                                 .peer = root, .kind = COLLECTIVE});
    unlock();
}

void sapwood_persistent_made(MPI_Comm comm, bool is_send, int peer, int tag, MPI_Request handle)
{
    struct sapwood_space *space = messages_are_told() ? space_of(comm) : NULL;
    if (peer == MPI_PROC_NULL || space == NULL)
        return;
    lock();
    request_add((struct request){.handle = SAPWOOD_HANDLE(handle), .space = space, .peer = peer, .tag = tag,
                                 .kind = is_send ? PERSISTENT_SEND : PERSISTENT_RECEIVE});
    unlock();
}

static uint64_t request_at(const void *all, int index, bool is_fortran)
{
    return SAPWOOD_HANDLE(is_fortran ? sapwood_request_f2c((const MPI_Fint *)all + index)
                                     : ((const MPI_Request *)all)[index]);
}

void sapwood_persistent_started(uint32_t function, const void *all, int count, bool is_fortran, uint64_t begin)
{
    for (int i = 0; i < count && messages_are_told(); i++) {
        lock();
        uint32_t number = request_found(request_at(all, i, is_fortran));
        struct request request = number == 0 ? (struct request){.kind = COLLECTIVE} : requests[number - 1];
        unlock();
        bool is_send = request.kind == PERSISTENT_SEND;
        if (!is_send && request.kind != PERSISTENT_RECEIVE)
            continue;
        if (!is_send)
            note_unsure(1);
        if (!is_send && is_wild(request.peer, request.tag)) {
            sapwood_events_lose_messages();
            continue;
        }
        lock();
        uint32_t sequence = next_message(request.space, is_send, request.peer, request.tag);
        if (!is_send)
            WRITE(request.space->posted, READ(request.space->posted) + 1);
        unlock();
        uint32_t kind = is_send ? SAPWOOD_EVENT_SEND_STARTED : SAPWOOD_EVENT_RECEIVE_COMPLETED;
        if (sequence != 0)
            sapwood_record((struct sapwood_event_of_call){.begin = begin, .space = request.space,
                                                          .function = function, .kind = kind,
                                                          .sequence = sequence, .peer = request.peer,
                                                          .tag = request.tag});
    }
}

void sapwood_request_freed(MPI_Request handle)
{
    lock();
    uint32_t number = request_found(SAPWOOD_HANDLE(handle));
    if (number != 0) {
        /* Nothing will say which message it takes. */
        if (requests[number - 1].kind == RECEIVE_WILD)
            sapwood_events_lose_messages();
        request_remove(number);
    }
    unlock();
}

/* What this thread's call waits for, which its arguments do not tell. */
static void tell_request(const struct request *request)
{
    struct sapwood_activity *activity = sapwood_activity_own();
    bool is_collective = request->kind == COLLECTIVE;
    SAPWOOD_TELL(activity->communicator, READ(request->space->handle));
    SAPWOOD_TELL(activity->peer, request->peer);
    SAPWOOD_TELL(activity->tag, is_collective ? SAPWOOD_NO_NUMBER : request->tag);
    SAPWOOD_TELL(activity->request_number, is_collective ? request->sequence : 0);
    /* The time of the call says that this is of it and not of one before. */
    atomic_store_explicit(&activity->request_since, READ(activity->since), memory_order_release);
}

MPI_Status *sapwood_completes(struct sapwood_completion *completion, const void *all, int count, MPI_Status *statuses,
                              bool is_one, bool is_fortran)
{
    static _Thread_local MPI_Status own[STATUSES] __attribute__((tls_model("initial-exec")));
    bool has_wild = false;
    uint32_t followed = 0, *link = &completion->first;
    *completion = (struct sapwood_completion){.requests = all, .is_fortran = is_fortran, .is_one = is_one};
    lock();
    for (int i = 0; i < count; i++) {
        uint32_t number = request_found(request_at(all, i, is_fortran));
        struct request *request = &requests[number - 1];
        if (number == 0 || request->kind == PERSISTENT_SEND || request->kind == PERSISTENT_RECEIVE)
            continue;
        has_wild = has_wild || request->kind == RECEIVE_WILD;
        request->index = i;
        request->waited = 0;
        request->is_waited = true;
        *link = number;
        link = &request->waited;
        followed++;
    }
    if (followed == 1)
        tell_request(&requests[completion->first - 1]);
    unlock();
    bool is_ignored = statuses == MPI_STATUS_IGNORE || statuses == MPI_STATUSES_IGNORE;
    if (is_ignored && has_wild && !is_fortran && (is_one || count <= STATUSES)) {
        statuses = own;
        is_ignored = false;
    }
    completion->statuses = is_ignored || is_fortran ? NULL : statuses;
    return statuses;
}

/* The status of a request that has completed; NULL if it cannot be read. */
static const MPI_Status *status_of(const struct sapwood_completion *completion, int index, const int *indices, int count)
{
    if (completion->statuses == NULL || completion->is_one)
        return completion->statuses;
    if (indices == NULL)
        return &completion->statuses[index];
    for (int i = 0; i < count; i++)
        if (indices[i] == index)
            return &completion->statuses[i];
    return NULL;
}

/* A receive from any source or tag has completed: now its message is known. */
static void resolve(struct request *request, const MPI_Status *status)
{
    struct sapwood_space *space = request->space;
    WRITE(space->pending, READ(space->pending) - 1);
    request->is_sure = request->is_sure && READ(space->posted) == request->posted;
    if (status == NULL) {
        sapwood_events_lose_messages();
        return;
    }
    request->peer = status->MPI_SOURCE;
    request->tag = status->MPI_TAG;
    request->sequence = next_message(space, false, request->peer, request->tag);
}

void sapwood_completed(const struct sapwood_completion *completion, uint32_t function, const int *indices, int count,
                       uint64_t begin, uint64_t ticks)
{
    uint64_t null = SAPWOOD_HANDLE(sapwood_library.request_null);
    uint32_t done = 0, receives = 0;
    bool are_sure = messages_are_told();
    lock();
    for (uint32_t at = completion->first, next; at != 0; at = next) {
        struct request *request = &requests[at - 1];
        next = request->waited;
        request->is_waited = false;
        if (!request->is_replaced && request_at(completion->requests, request->index, completion->is_fortran) != null)
            continue;
        if (request->kind == RECEIVE_WILD)
            resolve(request, status_of(completion, request->index, indices, count));
        if (request->kind != COLLECTIVE) {
            receives++;
            are_sure = are_sure && request->is_sure && request->sequence != 0;
        }
        request->waited = done;
        done = at;
    }
    if (receives > MEMBERS_MAX)
        are_sure = false;
    if (!are_sure && receives > 0)
        note_unsure(receives);
    for (uint32_t at = done, next; at != 0; at = next) {
        struct request request = requests[at - 1];
        next = request.waited;
        request_remove(at);
        bool is_collective = request.kind == COLLECTIVE;
        if (request.sequence == 0)
            continue;
        sapwood_record((struct sapwood_event_of_call){
            .begin = begin, .ticks = ticks, .space = request.space, .function = function,
            .kind = is_collective ? SAPWOOD_EVENT_COLLECTIVE_COMPLETED : SAPWOOD_EVENT_RECEIVE_COMPLETED,
            .members = is_collective ? 1 : are_sure ? receives : 0, .sequence = request.sequence,
            .peer = request.peer, .tag = request.tag});
    }
    unlock();
}

void sapwood_completion_failed(const struct sapwood_completion *completion)
{
    if (completion->first == 0)
        return;
    sapwood_events_lose_messages();
    lock();
    for (uint32_t at = completion->first, next; at != 0; at = next) {
        next = requests[at - 1].waited;
        requests[at - 1].is_waited = false;
        if (requests[at - 1].is_replaced)
            request_remove(at);
    }
    unlock();
}
