/* See completions.h. */
#include "completions.h"

#include <stdlib.h>

#include "status.h"

/* As many statuses a thread has room for. */
enum { STATUSES = 64 };

#define READ(word) atomic_load_explicit(&(word), memory_order_relaxed)

/* The list of this thread; NULL where it has no place in the table, and so no list there. */
static struct sapwood_pending *pending_own(void)
{
    const struct sapwood_activity *activity = sapwood_activity_own();
    uintptr_t place = ((uintptr_t)activity - (uintptr_t)sapwood_table->activities) / sizeof *activity;
    return place < SAPWOOD_ACTIVITIES ? &sapwood_table->pending[place] : NULL;
}

/* Begins a list: readers see that it is none. */
static void open_list(struct sapwood_pending *pending)
{
    SAPWOOD_TELL(pending->since, 0);
    atomic_thread_fence(memory_order_release);
}

/* Shows a list to readers, as that of this thread's call. */
static void close_list(struct sapwood_pending *pending)
{
    atomic_store_explicit(&pending->since, READ(sapwood_activity_own()->since), memory_order_release);
}

/* On which communicator a persistent collective is. The activity has a number that is the request's own, of which the
 * table tells nothing. */
static void tell_collective(const struct sapwood_request *request)
{
    const struct sapwood_space *space = request->space;
    struct sapwood_pending *pending = pending_own();
    if (pending == NULL)
        return;
    open_list(pending);
    SAPWOOD_TELL(pending->count, 0);
    SAPWOOD_TELL(pending->others, 0);
    SAPWOOD_TELL(pending->collective.function, request->function);
    SAPWOOD_TELL(pending->collective.class, sapwood_class_of_size(space->size));
    SAPWOOD_TELL(pending->collective.name, READ(space->name));
    SAPWOOD_TELL(pending->collective.between, (READ(space->flags) & SAPWOOD_SPACE_BETWEEN) != 0);
    close_list(pending);
}

/* What this thread's call waits for, which its arguments do not tell. */
static void tell_request(const struct sapwood_request *request)
{
    struct sapwood_activity *activity = sapwood_activity_own();
    bool is_collective = sapwood_request_is_collective(request);
    SAPWOOD_TELL(activity->communicator, READ(request->space->handle));
    SAPWOOD_TELL(activity->peer, request->peer);
    SAPWOOD_TELL(activity->tag, is_collective ? SAPWOOD_NO_NUMBER : request->tag);
    SAPWOOD_TELL(activity->request_number, is_collective ? request->sequence : 0);
    /* The time of the call says that this is of it and not of one before. */
    atomic_store_explicit(&activity->request_since, READ(activity->since), memory_order_release);
    if (request->kind == SAPWOOD_PERSISTENT_COLLECTIVE)
        tell_collective(request);
}

static bool is_open_receive(const struct sapwood_request *request)
{
    return request->space != NULL && sapwood_request_is_receive(request);
}

/* Whether its completion is an event. */
static bool is_awaited(const struct sapwood_request *request)
{
    if (request->kind == SAPWOOD_PERSISTENT_COLLECTIVE)
        return request->sequence != 0;
    return request->space != NULL && !sapwood_request_is_persistent(request);
}

/* The receives that this thread's call for several requests waits for: all that the call has listed, of this many
 * requests that it completes. Not of tests, which a program may call over and over: no reader takes those for waits. */
static void tell_receives(const struct sapwood_completion *completion, uint32_t requests)
{
    struct sapwood_pending *pending = pending_own();
    uint32_t count = 0;
    if (pending == NULL)
        return;
    open_list(pending);
    for (uint32_t at = completion->first; at != 0 && count < SAPWOOD_PENDING; at = sapwood_request_at(at)->waited) {
        const struct sapwood_request *request = sapwood_request_at(at);
        if (!is_open_receive(request))
            continue;
        SAPWOOD_TELL(pending->receives[count].communicator, READ(request->space->handle));
        SAPWOOD_TELL(pending->receives[count].peer, request->peer);
        SAPWOOD_TELL(pending->receives[count].tag, request->tag);
        count++;
    }
    SAPWOOD_TELL(pending->count, count);
    SAPWOOD_TELL(pending->others, requests - count);
    close_list(pending);
}

/* Lists the followed requests of the call; whether a status says something of one of them. */
static bool list_requests(struct sapwood_completion *completion)
{
    bool needs_status = false;
    uint32_t told = 0, receives = 0, requests = 0, *link = &completion->first;
    const struct sapwood_request *last = NULL;
    for (int i = 0; i < completion->handles.count; i++) {
        uint64_t handle = sapwood_request_handle(completion->handles, i);
        uint32_t number = sapwood_request_found(handle);
        if (handle != SAPWOOD_HANDLE(sapwood_library.request_null))
            requests++;
        struct sapwood_request *request = number == 0 ? NULL : sapwood_request_at(number);
        if (request == NULL || !request->is_active || request->kind == SAPWOOD_PERSISTENT_SEND)
            continue;
        /* It is listed already: by this call, if its handle comes twice, or by another thread's. */
        if (request->is_waited)
            continue;
        needs_status = needs_status || !sapwood_request_is_collective(request);
        request->index = i;
        request->waited = 0;
        request->is_waited = true;
        *link = number;
        link = &request->waited;
        if (is_open_receive(request))
            receives++;
        if (is_awaited(request)) {
            told++;
            last = request;
        }
    }
    if (!sapwood_is_recording())
        return needs_status;
    /* Beside other requests this one may have ended, as a receive whose message is there while sends wait. */
    if (told == 1 && requests == 1)
        tell_request(last);
    else if (receives > 0 && !completion->is_test)
        tell_receives(completion, requests);
    return needs_status;
}

void *sapwood_completes(struct sapwood_completion *completion, struct sapwood_handles handles, void *statuses,
                        enum sapwood_statuses kind)
{
    static _Thread_local MPI_Status own[STATUSES] __attribute__((tls_model("initial-exec")));
    *completion = (struct sapwood_completion){.handles = handles, .kind = kind, .is_test = completion->is_test};
    sapwood_requests_lock();
    completion->generation = sapwood_requests_generation;
    bool needs_status = list_requests(completion);
    sapwood_requests_unlock();
    if (!sapwood_is_ignored(statuses, handles.is_fortran)) {
        completion->statuses = statuses;
        return statuses;
    }
    if (!needs_status)
        return statuses;
    if (kind == SAPWOOD_STATUS_OF_EACH && handles.count > STATUSES)
        completion->statuses = completion->allocated = malloc((size_t)handles.count * sizeof(MPI_Status));
    else
        completion->statuses = own;
    return completion->statuses == NULL ? statuses : (void *)(uintptr_t)completion->statuses;
}

/* Takes the lock; the list is empty if its requests were forgotten meanwhile. */
static void lock_listed(struct sapwood_completion *completion)
{
    sapwood_requests_lock();
    if (completion->generation != sapwood_requests_generation)
        completion->first = 0;
}

/* The number of the first request of the list, which is taken off it; 0 at its end. */
static uint32_t taken_off(struct sapwood_completion *completion)
{
    uint32_t number = completion->first;
    if (number != 0) {
        struct sapwood_request *request = sapwood_request_at(number);
        completion->first = request->waited;
        request->is_waited = false;
    }
    return number;
}

static bool has_ended(const struct sapwood_completion *completion, const struct sapwood_request *request)
{
    return sapwood_request_handle(completion->handles, request->index) == SAPWOOD_HANDLE(sapwood_library.request_null);
}

/* The place of an index among those that the call lists; -1 if it is not there. They mostly come in
 * the order of the requests, so that the search goes on at `cursor`. */
static int listed_at(struct sapwood_completed completed, int index, int *cursor)
{
    for (int tries = 0; tries < completed.count; tries++) {
        int place = *cursor;
        *cursor = place + 1 < completed.count ? place + 1 : 0;
        if (completed.indices[place] == index)
            return place;
    }
    return -1;
}

/* The index that the call gives to the first request: 0 in C, 1 in Fortran. That of mpi_f08 in MPICH
 * 4.0 gives C's: where a request has ended whose index by Fortran's count is not listed. */
static int first_index(const struct sapwood_completion *completion, struct sapwood_completed completed)
{
    if (!completion->handles.is_fortran || completed.indices == NULL)
        return 0;
    int cursor = 0;
    if (listed_at(completed, 0, &cursor) >= 0)
        return 0;
    for (uint32_t at = completion->first; at != 0; at = sapwood_request_at(at)->waited) {
        const struct sapwood_request *request = sapwood_request_at(at);
        bool is_at_end = !sapwood_request_is_persistent(request) && has_ended(completion, request);
        if (is_at_end && listed_at(completed, request->index + 1, &cursor) < 0)
            return 0;
    }
    return 1;
}

/* The place of a request's status among those that the call has written; -1 if the call has not
 * completed it. A request that goes on is not looked for: of many, a call may complete a few. */
static int place_of(const struct sapwood_completion *completion, const struct sapwood_request *request,
                    struct sapwood_completed completed, int first_index, int *cursor)
{
    if (completed.indices == NULL)
        return completed.count <= 0 ? -1 : completion->kind == SAPWOOD_STATUS_OF_ONE ? 0 : request->index;
    bool may_go_on = !sapwood_request_is_persistent(request) && !request->is_replaced;
    if (may_go_on && !has_ended(completion, request))
        return -1;
    return listed_at(completed, request->index + first_index, cursor);
}

static const void *status_at(const struct sapwood_completion *completion, int place)
{
    return completion->statuses == NULL ? NULL : (const char *)completion->statuses + (size_t)place * sizeof(MPI_Status);
}

/* Counts what a receive has received, for the function that has posted it. */
static void count_bytes(const struct sapwood_request *request, const void *status)
{
    if (request->function == 0 || sapwood_request_is_collective(request))
        return;
    if (status == NULL) {
        sapwood_request_lost(request);
        return;
    }
    uint64_t bytes = sapwood_status_bytes(status);
    sapwood_add_received(request->function, request->class, bytes);
    SAPWOOD_EXTRA_LATER(request->function, request->class, request->site, request->comm, bytes);
}

void sapwood_completed(struct sapwood_completion *completion, uint32_t function, struct sapwood_completed completed,
                       uint64_t begin, uint64_t ticks)
{
    uint32_t told = 0;
    int cursor = 0;
    lock_listed(completion);
    int origin = first_index(completion, completed);
    for (uint32_t at; (at = taken_off(completion)) != 0;) {
        struct sapwood_request *request = sapwood_request_at(at);
        int place = place_of(completion, request, completed, origin, &cursor);
        if (place < 0) {
            if (request->is_replaced)
                sapwood_request_remove(at);
            continue;
        }
        const void *status = status_at(completion, place);
        count_bytes(request, status);
        if (sapwood_request_is_persistent(request))
            request->is_active = false;
        if (is_awaited(request)) {
            if (request->kind == SAPWOOD_RECEIVE_WILD)
                sapwood_message_resolved(request, status);
            request->waited = told;
            told = at;
        } else if (!sapwood_request_is_persistent(request)) {
            sapwood_request_remove(at);
        }
    }
    if (told != 0)
        sapwood_messages_completed(told, function, begin, ticks);
    sapwood_requests_unlock();
    free(completion->allocated);
}

/* Whether the error says that each status has an error of its own. */
static bool is_in_status(int error)
{
    int class = MPI_SUCCESS;
    sapwood_library.error_class(error, &class);
    return class == MPI_ERR_IN_STATUS;
}

void sapwood_completion_failed(struct sapwood_completion *completion, struct sapwood_completed completed, int error)
{
    bool has_each = completion->kind == SAPWOOD_STATUS_OF_EACH && completion->statuses != NULL;
    bool are_readable = has_each && is_in_status(error), has_told = false;
    int cursor = 0;
    lock_listed(completion);
    int origin = are_readable ? first_index(completion, completed) : 0;
    for (uint32_t at; (at = taken_off(completion)) != 0;) {
        struct sapwood_request *request = sapwood_request_at(at);
        has_told = has_told || request->space != NULL;
        int place = are_readable ? place_of(completion, request, completed, origin, &cursor) : -1;
        int own_error = place < 0 ? error : sapwood_status_read(status_at(completion, place)).MPI_ERROR;
        if (place >= 0 && own_error == MPI_SUCCESS)
            count_bytes(request, status_at(completion, place));
        if (sapwood_request_is_persistent(request))
            request->is_active = place >= 0 && own_error == MPI_ERR_PENDING;
        else if (request->is_replaced || has_ended(completion, request))
            sapwood_request_remove(at);
    }
    sapwood_requests_unlock();
    if (has_told)
        sapwood_events_lose_messages();
    free(completion->allocated);
}
