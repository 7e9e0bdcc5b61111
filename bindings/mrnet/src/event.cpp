/*
 * Events, their payloads, and how they are told: by queue, by callback, by descriptor.
 */
#include "mrnet/Event.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace MRN {

const EventClass Event::EVENT_CLASS_ALL = 0;
const EventClass Event::DATA_EVENT = 1;
const EventClass Event::TOPOLOGY_EVENT = 2;
const EventClass Event::ERROR_EVENT = 3;
const EventType Event::EVENT_TYPE_ALL = -1;

const EventType DataEvent::DATA_AVAILABLE = 0;

const EventType ErrorEvent::ERROR_INTERNAL = 0;
const EventType ErrorEvent::ERROR_SYSTEM = 1;
const EventType ErrorEvent::ERROR_USAGE = 2;

const EventType TopologyEvent::TOPOL_ADD_BE = 0;
const EventType TopologyEvent::TOPOL_ADD_CP = 1;
const EventType TopologyEvent::TOPOL_REMOVE_NODE = 2;
const EventType TopologyEvent::TOPOL_CHANGE_PARENT = 3;

Event::Event(EventClass event_class, EventType type, EventData* data)
    : class_(event_class), type_(type), data_(data)
{
}

Event::~Event() {}

EventClass Event::get_Class() const
{
    return class_;
}

EventType Event::get_Type() const
{
    return type_;
}

EventData* Event::get_Data() const
{
    return data_;
}

DataEvent::DataEvent(EventType type, DataEventData* data) : Event(DATA_EVENT, type, data) {}

DataEvent::DataEventData::DataEventData(Stream* stream) : stream_(stream) {}

Stream* DataEvent::DataEventData::get_Stream() const
{
    return stream_;
}

ErrorEvent::ErrorEvent(EventType type, ErrorEventData* data) : Event(ERROR_EVENT, type, data) {}

ErrorEvent::ErrorEventData::ErrorEventData(Rank rank, const char* message)
    : rank_(rank), message_(message == NULL ? "" : message)
{
}

Rank ErrorEvent::ErrorEventData::get_Rank() const
{
    return rank_;
}

const char* ErrorEvent::ErrorEventData::get_Message() const
{
    return message_.c_str();
}

TopologyEvent::TopologyEvent(EventType type, TopolEventData* data)
    : Event(TOPOLOGY_EVENT, type, data)
{
}

TopologyEvent::TopolEventData::TopolEventData(Rank rank, Rank parent)
    : rank_(rank), parent_(parent)
{
}

Rank TopologyEvent::TopolEventData::get_Rank() const
{
    return rank_;
}

Rank TopologyEvent::TopolEventData::get_Parent_Rank() const
{
    return parent_;
}

EventPipe::EventPipe() : descriptor_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

EventPipe::~EventPipe()
{
    if (descriptor_ >= 0)
        close(descriptor_);
}

void EventPipe::signal()
{
    /* A counter that is full is readable, which is all that is asked for. */
    (void)!eventfd_write(descriptor_, 1);
}

void EventPipe::clear()
{
    eventfd_t count;
    (void)!eventfd_read(descriptor_, &count);
}

int EventPipe::get_ReadFd() const
{
    return descriptor_;
}

namespace {

/* The most events that are held: beyond that the oldest are dropped, with their payloads. */
const size_t EVENTS_MAX = 4096;

bool covers(EventClass wanted, EventClass event_class)
{
    return wanted == Event::EVENT_CLASS_ALL || wanted == event_class;
}

bool covers_type(EventType wanted, EventType type)
{
    return wanted == Event::EVENT_TYPE_ALL || wanted == type;
}

void destroy(Event* event)
{
    EventData* data = event->get_Data();
    if (event->get_Class() == Event::DATA_EVENT)
        delete static_cast<DataEvent::DataEventData*>(data);
    else if (event->get_Class() == Event::ERROR_EVENT)
        delete static_cast<ErrorEvent::ErrorEventData*>(data);
    else
        delete static_cast<TopologyEvent::TopolEventData*>(data);
    delete event;
}

}  // namespace

EventMgr::EventMgr() {}

EventMgr::~EventMgr()
{
    clear_Events();
    for (auto& pipe : pipes_)
        delete pipe.second;
}

bool EventMgr::add_Event(Event* event)
{
    if (events_.size() >= EVENTS_MAX) {
        destroy(events_.front());
        events_.pop_front();
    }
    events_.push_back(event);
    return true;
}

Event* EventMgr::get_NextEvent()
{
    if (events_.empty())
        return NULL;
    Event* event = events_.front();
    events_.pop_front();
    return event;
}

unsigned int EventMgr::get_NumEvents() const
{
    return unsigned(events_.size());
}

void EventMgr::clear_Events()
{
    for (Event* event : events_)
        destroy(event);
    events_.clear();
}

bool EventMgr::register_Callback(evt_cb_func function, void* data, EventClass event_class,
                                 EventType type, bool once)
{
    if (function == NULL)
        return false;
    callbacks_.push_back({function, data, event_class, type, once});
    return true;
}

bool EventMgr::remove_Callback(evt_cb_func function, EventClass event_class, EventType type)
{
    size_t before = callbacks_.size();
    callbacks_.remove_if([&](const evt_cb_info& info) {
        return info.func == function && covers(event_class, info.event_class) &&
               covers_type(type, info.type);
    });
    return callbacks_.size() < before;
}

bool EventMgr::remove_Callbacks(EventClass event_class, EventType type)
{
    size_t before = callbacks_.size();
    callbacks_.remove_if([&](const evt_cb_info& info) {
        return covers(event_class, info.event_class) && covers_type(type, info.type);
    });
    return callbacks_.size() < before;
}

bool EventMgr::has_Callbacks() const
{
    return !callbacks_.empty();
}

bool EventMgr::is_Wanted(EventClass event_class) const
{
    for (const evt_cb_info& info : callbacks_)
        if (covers(info.event_class, event_class))
            return true;
    return has_Pipe(event_class);
}

std::vector<evt_cb_info> EventMgr::take_Callbacks(const Event& event)
{
    std::vector<evt_cb_info> due;
    for (auto at = callbacks_.begin(); at != callbacks_.end();) {
        bool is_due = covers(at->event_class, event.get_Class()) &&
                      covers_type(at->type, event.get_Type());
        if (is_due)
            due.push_back(*at);
        at = is_due && at->onetime ? callbacks_.erase(at) : std::next(at);
    }
    return due;
}

EventPipe* EventMgr::get_Pipe(EventClass event_class)
{
    for (auto& pipe : pipes_)
        if (covers(pipe.first, event_class))
            return pipe.second;
    return pipes_[event_class] = new EventPipe;
}

bool EventMgr::has_Pipe(EventClass event_class) const
{
    for (const auto& pipe : pipes_)
        if (event_class == Event::EVENT_CLASS_ALL || covers(pipe.first, event_class))
            return true;
    return false;
}

void EventMgr::close_Pipe(EventClass event_class)
{
    auto found = pipes_.find(event_class);
    if (found != pipes_.end()) {
        delete found->second;
        pipes_.erase(found);
    }
}

}  // namespace MRN
