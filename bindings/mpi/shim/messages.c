/* Channels, and the messages of requests; see messages.h. */
#include "messages.h"

#include "places.h"
#include "status.h"

enum {
    CHANNEL_BITS = 13,
    CHANNELS = 1 << CHANNEL_BITS,
    CHANNEL_TRIES_MAX = 64,
    MEMBERS_MAX = 255,
};

/* Messages of one communicator, peer and tag, in one direction. MPI keeps the order of those that one
 * thread sends or receives; a channel that a second one uses has no order, and is not counted on. */
struct channel {
    uint32_t owner; /* number of the space times 2, plus 1 for sends, plus 1; 0 free */
    uint32_t uses;  /* of the place of that space */
    int32_t peer;
    int32_t tag;
    uint32_t count;
    uint32_t thread; /* place of its thread's activity, plus 1; SEVERAL once there are two */
};
#define SEVERAL UINT32_MAX

static struct channel channels[CHANNELS];

#define READ(word) atomic_load_explicit(&(word), memory_order_relaxed)
#define WRITE(word, value) atomic_store_explicit(&(word), (value), memory_order_relaxed)

static bool is_contended(void)
{
    return __builtin_expect((sapwood_table->header.flags & SAPWOOD_FLAG_THREAD_MULTIPLE) != 0, 0);
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

/* Threads that have no place in the table are not distinguished. */
static uint32_t thread_number(void)
{
    uintptr_t first = (uintptr_t)sapwood_table->activities, own = (uintptr_t)sapwood_activity_own();
    uintptr_t place = (own - first) / sizeof(struct sapwood_activity);
    return place < SAPWOOD_ACTIVITIES ? (uint32_t)place + 1 : SEVERAL;
}

/* The channel of these, or one that is free: of no communicator yet, or of one that is freed; NULL where there is
 * no room. Callers hold the lock. */
static struct channel *channel_of(struct channel wanted)
{
    uint64_t mixed = ((uint64_t)wanted.owner << 32 ^ (uint32_t)wanted.peer) * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t place = (uint32_t)((mixed + (uint32_t)wanted.tag) * UINT64_C(0xD6E8FEB86659FD93) >> (64 - CHANNEL_BITS));
    struct channel *free = NULL;
    for (int tries = 0; tries < CHANNEL_TRIES_MAX; tries++, place = (place + 1) & (CHANNELS - 1)) {
        struct channel *one = &channels[place];
        bool is_of_space = one->owner == wanted.owner && one->uses == wanted.uses;
        if (is_of_space && one->peer == wanted.peer && one->tag == wanted.tag)
            return one;
        if (free == NULL && (one->owner == 0 || sapwood_place_is_over((one->owner - 1) >> 1, one->uses)))
            free = one;
        if (one->owner == 0)
            break;
    }
    if (free != NULL)
        *free = wanted;
    return free;
}

/* The number of the next message of a channel; 0 when it is not known. Callers hold the lock. */
static uint32_t next_message(const struct sapwood_space *space, bool is_send, int peer, int tag)
{
    uint32_t owner = ((uint32_t)(space - sapwood_events->spaces) << 1 | is_send) + 1;
    uint32_t uses = sapwood_place_uses(space);
    struct channel *channel = channel_of((struct channel){owner, uses, peer, tag, 0, thread_number()});
    if (channel == NULL) {
        sapwood_events_lose_messages();
        return 0;
    }
    if (is_contended() && channel->thread != thread_number())
        channel->thread = SEVERAL;
    return channel->thread == SEVERAL ? 0 : ++channel->count;
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
    sapwood_requests_lock();
    uint32_t sequence = space == NULL ? 0 : next_message(space, true, dest, tag);
    sapwood_requests_unlock();
    if (sequence != 0)
        sapwood_record((struct sapwood_event_of_call){.begin = begin, .ticks = ticks, .space = space,
                                                      .function = function, .kind = kind,
                                                      .members = size_class(bytes), .sequence = sequence,
                                                      .peer = dest, .tag = tag});
}

void sapwood_message_received(uint32_t function, MPI_Comm comm, int source, int tag, const void *status, uint64_t begin,
                              uint64_t ticks)
{
    if (source == MPI_PROC_NULL)
        return;
    struct sapwood_space *space = messages_are_told() ? space_of(comm) : NULL;
    if (space == NULL)
        return note_unsure(1);
    if (is_wild(source, tag)) {
        MPI_Status known = sapwood_status_read(status);
        source = known.MPI_SOURCE;
        tag = known.MPI_TAG;
    }
    sapwood_requests_lock();
    bool is_sure = READ(space->pending) == 0;
    WRITE(space->posted, READ(space->posted) + 1);
    uint32_t sequence = next_message(space, false, source, tag);
    sapwood_requests_unlock();
    if (!is_sure || sequence == 0)
        note_unsure(1);
    if (sequence != 0)
        sapwood_record((struct sapwood_event_of_call){.begin = begin, .ticks = ticks, .space = space,
                                                      .function = function, .kind = SAPWOOD_EVENT_RECEIVE,
                                                      .members = is_sure, .sequence = sequence, .peer = source,
                                                      .tag = tag});
}

static struct sapwood_request request_of(const struct sapwood_posting *made, enum sapwood_request_kind kind)
{
    return (struct sapwood_request){.handle = SAPWOOD_HANDLE(made->request), .bytes = made->bytes, .site = made->site,
                                    .comm = made->has_comm ? SAPWOOD_HANDLE(made->comm) : 0,
                                    .function = made->function, .peer = made->peer, .tag = made->tag,
                                    .kind = (uint8_t)kind, .class = (uint8_t)made->class,
                                    .is_of_neighbours = made->is_of_neighbours,
                                    .is_active = kind == SAPWOOD_RECEIVE};
}

/* Which message of its channel a receive takes that has just been posted. Callers hold the lock. */
static void follow_message(struct sapwood_request *request, struct sapwood_space *space)
{
    request->is_sure = READ(space->pending) == 0;
    request->posted = READ(space->posted) + 1;
    WRITE(space->posted, request->posted);
    if (is_wild(request->peer, request->tag)) {
        request->kind = SAPWOOD_RECEIVE_WILD;
        WRITE(space->pending, READ(space->pending) + 1);
    } else {
        request->sequence = next_message(space, false, request->peer, request->tag);
    }
    if (request->kind == SAPWOOD_RECEIVE_WILD || request->sequence != 0)
        request->space = space;
    else
        note_unsure(1);
}

void sapwood_receive_posted(const struct sapwood_posting *posting)
{
    struct sapwood_request request = request_of(posting, SAPWOOD_RECEIVE);
    struct sapwood_space *space = NULL;
    if (posting->has_comm && sapwood_is_recording()) {
        space = messages_are_told() ? space_of(posting->comm) : NULL;
        if (space == NULL)
            note_unsure(1);
    }
    sapwood_requests_lock();
    if (space != NULL)
        follow_message(&request, space);
    sapwood_request_add(request);
    sapwood_requests_unlock();
}

/* A process alone waits for none. */
static bool has_others(const struct sapwood_space *space)
{
    return space->size > 1 || (READ(space->flags) & SAPWOOD_SPACE_BETWEEN) != 0;
}

void sapwood_collective_followed(uint32_t function, MPI_Comm comm, uint32_t sequence, int root, MPI_Request handle,
                                 uint64_t returned)
{
    struct sapwood_space *space = sapwood_space_of(comm);
    if (READ(space->handle) != SAPWOOD_HANDLE(comm) || !has_others(space))
        return;
    if (sapwood_request_is_shared(handle)) {
        sapwood_record((struct sapwood_event_of_call){.begin = returned, .space = space, .function = function,
                                                      .kind = SAPWOOD_EVENT_COLLECTIVE_COMPLETED, .members = 1,
                                                      .sequence = sequence, .peer = root});
        return;
    }
    sapwood_requests_lock();
    sapwood_request_add((struct sapwood_request){.handle = SAPWOOD_HANDLE(handle), .space = space,
                                                 .sequence = sequence, .peer = root, .kind = SAPWOOD_COLLECTIVE,
                                                 .is_active = true});
    sapwood_requests_unlock();
}

/* The space of a persistent collective that was made on a communicator, of which the number counts also where there
 * is none for it: in other processes there may be one. Callers hold the lock. */
static struct sapwood_space *space_of_persistent(const struct sapwood_space *comm)
{
    if (sapwood_requests_have_room())
        return sapwood_persistent_space_made(comm);
    sapwood_persistent_space_counted(comm);
    return NULL;
}

void sapwood_persistent_made(const struct sapwood_posting *made, enum sapwood_request_kind kind)
{
    struct sapwood_request request = request_of(made, kind);
    /* Also where nothing is recorded yet: its starts are counted always. */
    const struct sapwood_space *comm = &sapwood_no_space;
    if (kind == SAPWOOD_PERSISTENT_COLLECTIVE)
        comm = sapwood_space_of(made->comm);
    else if (sapwood_is_recording() && messages_are_told())
        request.space = space_of(made->comm);
    sapwood_requests_lock();
    if (comm != &sapwood_no_space)
        request.space = space_of_persistent(comm);
    sapwood_request_add(request);
    sapwood_requests_unlock();
}

uint64_t sapwood_request_handle(struct sapwood_handles handles, int index)
{
    return SAPWOOD_HANDLE(handles.is_fortran ? sapwood_request_f2c((const MPI_Fint *)handles.all + index)
                                             : ((const MPI_Request *)handles.all)[index]);
}

/* A persistent request that is an event was started. */
static void tell_start(uint32_t function, const struct sapwood_request *request, uint64_t begin)
{
    bool is_send = request->kind == SAPWOOD_PERSISTENT_SEND;
    if (!is_send)
        note_unsure(1);
    if (!is_send && is_wild(request->peer, request->tag)) {
        sapwood_events_lose_messages();
        return;
    }
    sapwood_requests_lock();
    uint32_t sequence = next_message(request->space, is_send, request->peer, request->tag);
    if (!is_send)
        WRITE(request->space->posted, READ(request->space->posted) + 1);
    sapwood_requests_unlock();
    uint32_t kind = is_send ? SAPWOOD_EVENT_SEND_STARTED : SAPWOOD_EVENT_RECEIVE_COMPLETED;
    if (sequence != 0)
        sapwood_record((struct sapwood_event_of_call){.begin = begin, .space = request->space, .function = function,
                                                      .kind = kind, .sequence = sequence, .peer = request->peer,
                                                      .tag = request->tag});
}

/* The number of the latest start of a persistent collective; 0 where that is lost. */
static uint32_t number_of_start(const struct sapwood_space *space)
{
    bool is_lost = (READ(space->flags) & SAPWOOD_SPACE_NUMBER_LOST) != 0;
    return is_lost ? 0 : READ(space->sequence);
}

/* A persistent collective was started. Callers hold the lock, so that the request is in its place. */
static void count_start(struct sapwood_request *request)
{
    struct sapwood_space *space = request->space;
    request->sequence = 0;
    if (space == NULL)
        return;
    /* A reader that sees the number sees what it stands for, or what comes after it. */
    WRITE(space->last, (uint64_t)(uint32_t)request->peer << 32 | request->function);
    atomic_store_explicit(&space->sequence, READ(space->sequence) + 1, memory_order_release);
    if (has_others(space) && !request->is_of_neighbours && sapwood_is_recording())
        request->sequence = number_of_start(space);
}

/* Records such a start. Of a request that has no space it is counted that it is not recorded. */
static void tell_start_of_collective(const struct sapwood_request *request, uint64_t begin, uint64_t ticks)
{
    const struct sapwood_space *space = request->space == NULL ? &sapwood_no_space : request->space;
    if (sapwood_is_recording())
        sapwood_record((struct sapwood_event_of_call){.begin = begin, .ticks = ticks, .space = space,
                                                      .function = request->function,
                                                      .kind = SAPWOOD_EVENT_COLLECTIVE_STARTED, .members = 1,
                                                      .sequence = number_of_start(space), .peer = request->peer,
                                                      .tag = request->tag});
}

void sapwood_persistent_started(uint32_t function, struct sapwood_handles handles, uint64_t begin, uint64_t ticks)
{
    for (int i = 0; i < handles.count; i++) {
        struct sapwood_request request = {.kind = SAPWOOD_COLLECTIVE};
        sapwood_requests_lock();
        uint32_t number = sapwood_request_found(sapwood_request_handle(handles, i));
        if (number != 0) {
            struct sapwood_request *started = sapwood_request_at(number);
            started->is_active = sapwood_is_counting();
            if (started->kind == SAPWOOD_PERSISTENT_COLLECTIVE)
                count_start(started);
            request = *started;
        }
        sapwood_requests_unlock();
        if (!sapwood_request_is_persistent(&request))
            continue;
        if (!sapwood_request_is_receive(&request) && request.bytes != SAPWOOD_NO_AMOUNT) {
            sapwood_add_sent(request.function, request.class, request.bytes);
            SAPWOOD_EXTRA_LATER(request.function, request.class, request.site, request.comm, request.bytes);
        }
        if (sapwood_request_is_collective(&request))
            tell_start_of_collective(&request, begin, ticks);
        else if (request.space != NULL && messages_are_told())
            tell_start(function, &request, begin);
    }
}

/* Whether other processes count a start that has failed here is not known, nor, of several, which one has. */
void sapwood_persistent_start_failed(struct sapwood_handles handles)
{
    if (handles.all == NULL)
        return;
    sapwood_requests_lock();
    for (int i = 0; i < handles.count; i++) {
        uint32_t number = sapwood_request_found(sapwood_request_handle(handles, i));
        const struct sapwood_request *request = number == 0 ? NULL : sapwood_request_at(number);
        if (request != NULL && request->kind == SAPWOOD_PERSISTENT_COLLECTIVE && request->space != NULL)
            atomic_fetch_or_explicit(&request->space->flags, SAPWOOD_SPACE_NUMBER_LOST, memory_order_relaxed);
    }
    sapwood_requests_unlock();
}

void sapwood_request_freed(MPI_Request handle)
{
    sapwood_requests_lock();
    uint32_t number = sapwood_request_found(SAPWOOD_HANDLE(handle));
    if (number != 0) {
        sapwood_request_lost(sapwood_request_at(number));
        sapwood_request_remove(number);
    }
    sapwood_requests_unlock();
}

void sapwood_message_resolved(struct sapwood_request *request, const void *status)
{
    struct sapwood_space *space = request->space;
    WRITE(space->pending, READ(space->pending) - 1);
    request->is_sure = request->is_sure && READ(space->posted) == request->posted;
    if (status == NULL) {
        sapwood_events_lose_messages();
        return;
    }
    MPI_Status known = sapwood_status_read(status);
    request->peer = known.MPI_SOURCE;
    request->tag = known.MPI_TAG;
    request->sequence = next_message(space, false, request->peer, request->tag);
}

void sapwood_messages_completed(uint32_t first, uint32_t function, uint64_t begin, uint64_t ticks)
{
    uint32_t receives = 0;
    bool are_sure = messages_are_told();
    for (uint32_t at = first; at != 0; at = sapwood_request_at(at)->waited) {
        const struct sapwood_request *request = sapwood_request_at(at);
        if (sapwood_request_is_collective(request))
            continue;
        receives++;
        are_sure = are_sure && request->is_sure && request->sequence != 0;
    }
    if (receives > MEMBERS_MAX)
        are_sure = false;
    if (!are_sure && receives > 0)
        note_unsure(receives);
    for (uint32_t at = first, next; at != 0; at = next) {
        struct sapwood_request request = *sapwood_request_at(at);
        next = request.waited;
        bool is_collective = sapwood_request_is_collective(&request);
        if (request.sequence != 0)
            sapwood_record((struct sapwood_event_of_call){
                .begin = begin, .ticks = ticks, .space = request.space, .function = function,
                .kind = is_collective ? SAPWOOD_EVENT_COLLECTIVE_COMPLETED : SAPWOOD_EVENT_RECEIVE_COMPLETED,
                .members = is_collective ? 1 : are_sure ? receives : 0, .sequence = request.sequence,
                .peer = request.peer, .tag = is_collective ? 0 : request.tag});
        if (!sapwood_request_is_persistent(&request) || request.is_replaced)
            sapwood_request_remove(at);
    }
}
