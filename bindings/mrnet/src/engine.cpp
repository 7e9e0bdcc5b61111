/*
 * The lock, the waiting and the service thread of a network; engine.hpp says how they go together.
 */
#include "engine.hpp"

#include <poll.h>

#include <chrono>

namespace MRN {

namespace {

/* How long a caller that waits alone stays inside the library at a time, in milliseconds. */
enum { SLICE_MS = 100 };
/* How long the tool must not have used a network for the service thread to serve it. */
const std::chrono::milliseconds IDLE(250);
/* Never wait longer for the descriptor, whatever the library says, in milliseconds. */
enum { POLL_MS = 1000 };

}  // namespace

Engine::Hold::Hold(Engine& engine, bool is_service)
{
    if (!is_service && std::this_thread::get_id() != engine.first_thread_)
        engine.has_others_ = true;
    lock = std::unique_lock<std::mutex>(engine.mutex);
    if (!is_service)
        engine.uses_++;
    engine.bring_here();
}

/* Has the library know this thread, if another one has used the network since. */
void Engine::bring_here()
{
    if (last_thread_ == std::this_thread::get_id())
        return;
    bring();
    last_thread_ = std::this_thread::get_id();
}

Engine::Engine(Network& the_network, Rank the_rank)
    : network(the_network), topology(&the_network), rank(the_rank), host(local_host()), port(0),
      ended(false), is_recovering(true), watched(0), first_thread_(std::this_thread::get_id()),
      has_others_(false), is_closing_(false), has_left_(false), may_end_(false), uses_(0), waiting_(0),
      is_polling_(false), is_service_polling_(false)
{
}

Engine::~Engine()
{
    {
        std::lock_guard<std::mutex> guard(sleep_mutex_);
        may_end_ = true;
    }
    sleep_.notify_all();
    if (service_.joinable())
        service_.join();
    for (Communicator* communicator : communicators)
        delete communicator;
}

void Engine::start_service(const std::function<void()>& begin)
{
    bool has_begun = false;
    service_ = std::thread([this, &begin, &has_begun] {
        begin();
        {
            std::lock_guard<std::mutex> guard(sleep_mutex_);
            has_begun = true;
        }
        sleep_.notify_all();
        serve();
        std::unique_lock<std::mutex> sleep(sleep_mutex_);
        has_left_ = true;
        sleep_.notify_all();
        sleep_.wait(sleep, [this] { return may_end_; });
    });
    std::unique_lock<std::mutex> sleep(sleep_mutex_);
    sleep_.wait(sleep, [&has_begun] { return has_begun; });
    last_thread_ = std::thread::id();
}

void Engine::stop_service()
{
    std::unique_lock<std::mutex> sleep(sleep_mutex_);
    is_closing_ = true;
    sleep_.notify_all();
    wake_.signal();
    if (service_.joinable())
        sleep_.wait(sleep, [this] { return has_left_; });
}

/* Whether this thread may wait inside the library: no other thread needs the network meanwhile. */
bool Engine::is_alone() const
{
    return !has_others_ && watched == 0 && !events.has_Callbacks() &&
           !events.has_Pipe(Event::EVENT_CLASS_ALL);
}

void Engine::rest(Hold& hold, bool is_service)
{
    if (is_polling_) {
        if (is_service_polling_)
            wake_.signal();
        changed_.wait_for(hold.lock, std::chrono::milliseconds(SLICE_MS));
        bring_here();
        return;
    }
    int idle = idle_milliseconds();
    pollfd watched[2] = {{descriptor(), POLLIN, 0}, {wake_.get_ReadFd(), POLLIN, 0}};
    is_polling_ = true;
    is_service_polling_ = is_service;
    hold.lock.unlock();
    poll(watched, 2, idle < 0 || idle > POLL_MS ? POLL_MS : idle);
    hold.lock.lock();
    bring_here();
    is_polling_ = is_service_polling_ = false;
    if (watched[1].revents != 0)
        wake_.clear();
    turn(0);
    notice();
    changed_.notify_all();
}

void Engine::notice()
{
    collect();
    if (!due_.empty())
        sleep_.notify_all();
}

int Engine::recv(Stream* only, int* tag, PacketPtr& packet, Stream** stream, bool is_blocking)
{
    Hold hold(*this);
    Stream* from = only;
    int result;
    waiting_++;
    for (;;) {
        bool may_wait = is_blocking && !is_polling_ && is_alone();
        result = take(only, packet, &from, may_wait ? int(SLICE_MS) : 0);
        if (!due_.empty())
            sleep_.notify_all();
        if (result != 0 || !is_blocking || is_closing_)
            break;
        if (!may_wait)
            rest(hold, false);
    }
    waiting_--;
    if (result == 1) {
        if (tag != NULL)
            *tag = packet->get_Tag();
        if (stream != NULL)
            *stream = from;
    }
    return result;
}

int Engine::send(Stream& sender, PacketContents& packet)
{
    StreamContents& stream = sender.contents();
    sapwood_error_t error;
    if (!packet.load(&error)) {
        network.error(code_of(error), rank, "%s", error.text);
        return -1;
    }
    mrn_pointers values;
    mrn_point(&packet.values, &values);
    Hold hold(*this);
    if (stream.is_closed || ended || (!stream.is_direct && keep(sender) != 0))
        return -1;
    if (put(stream, packet, values) != 0)
        return -1;
    stream.packets_sent++;
    stream.bytes_sent += mrn_payload_bytes(&packet.values);
    return 0;
}

int Engine::flush()
{
    Hold hold(*this);
    return write() == 0 ? 0 : -1;
}

void Engine::refresh()
{
    Hold hold(*this);
    turn(0);
    notice();
}

bool Engine::has_ended()
{
    refresh();
    std::lock_guard<std::mutex> guard(mutex);
    return ended;
}

void Engine::wait_for_end()
{
    Hold hold(*this);
    waiting_++;
    while (!ended && !is_closing_)
        rest(hold, false);
    waiting_--;
}

Stream* Engine::stream(unsigned int id)
{
    Hold hold(*this);
    turn(0);
    notice();
    auto direct = direct_streams.find(id);
    if (direct != direct_streams.end())
        return direct->second;
    auto found = id >= USER_STRM_BASE_ID ? streams.find(id - USER_STRM_BASE_ID) : streams.end();
    return found == streams.end() ? NULL : found->second;
}

void Engine::close_stream(Stream& stream)
{
    Hold hold(*this);
    StreamContents& contents = stream.contents();
    contents.is_closed = true;
    watched -= contents.pipe != nullptr;
    contents.pipe.reset();
    close_handle(stream);
    auto found = streams.find(contents.id);
    if (found != streams.end() && found->second == &stream)
        streams.erase(found);
    auto direct = direct_streams.find(contents.peer);
    if (direct != direct_streams.end() && direct->second == &stream)
        direct_streams.erase(direct);
}

/* Deletes the streams that the tool has left. */
void Engine::delete_streams()
{
    std::set<Stream*> left;
    for (auto& entry : streams)
        left.insert(entry.second);
    for (auto& entry : direct_streams)
        left.insert(entry.second);
    for (Stream* stream : left)
        delete stream;
}

/* Notifies the callers that wait for a stream's data that more has come. */
void Engine::announce(Stream& stream, uint64_t arrived)
{
    StreamContents& contents = stream.contents();
    if (arrived <= contents.announced)
        return;
    contents.announced = arrived;
    if (contents.pipe)
        contents.pipe->signal();
    if (events.is_Wanted(Event::DATA_EVENT))
        deliver(new DataEvent(DataEvent::DATA_AVAILABLE, new DataEvent::DataEventData(&stream)));
}

/* Keeps an event, wakes the callers that wait for its descriptor, and has callbacks called. */
void Engine::deliver(Event* event)
{
    for (const evt_cb_info& info : events.take_Callbacks(*event))
        due_.push_back({info, *event});
    EventClass event_class = event->get_Class();
    events.add_Event(event);
    if (events.has_Pipe(event_class))
        events.get_Pipe(event_class)->signal();
    if (!due_.empty())
        sleep_.notify_all();
}

void Engine::run_callbacks(std::unique_lock<std::mutex>& lock)
{
    while (!due_.empty()) {
        Due due = due_.front();
        due_.pop_front();
        lock.unlock();
        due.info.func(&due.event, due.info.data);
        lock.lock();
    }
}

/* The service thread: it leaves a network alone that the tool uses, but for callbacks. */
void Engine::serve()
{
    uint64_t seen = 0;
    while (!is_closing_) {
        {
            std::unique_lock<std::mutex> sleep(sleep_mutex_);
            if (!is_closing_)
                sleep_.wait_for(sleep, IDLE);
        }
        std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
        if (!lock.owns_lock())
            continue;
        run_callbacks(lock);
        bool is_used = ended || waiting_ > 0 || uses_ != seen;
        seen = uses_;
        lock.unlock();
        while (!is_used && !is_closing_) {
            Hold hold(*this, true);
            rest(hold, true);
            run_callbacks(hold.lock);
            is_used = ended || waiting_ > 0 || uses_ != seen;
        }
    }
}

}  // namespace MRN
