/*
 * What happens in a network: data that has come, processes that come and go, errors.
 */
#ifndef MRNET_EVENT_H
#define MRNET_EVENT_H

#include <algorithm>
#include <deque>
#include <list>

#include "mrnet/Types.h"
#include "xplat/Monitor.h"
#include "xplat/Mutex.h"

namespace MRN {

typedef int EventClass;
typedef int EventType;

class Stream;

/* Payloads have no virtual members: cast them by the event's class. The caller that takes an event deletes
   its payload. */
class EventData {};

class Event {
  public:
    static const EventClass EVENT_CLASS_ALL;
    static const EventClass DATA_EVENT;
    static const EventClass TOPOLOGY_EVENT;
    static const EventClass ERROR_EVENT;
    static const EventType EVENT_TYPE_ALL;

    Event(EventClass event_class, EventType type, EventData* data);
    virtual ~Event();

    EventClass get_Class() const;
    EventType get_Type() const;
    EventData* get_Data() const;

  private:
    EventClass class_;
    EventType type_;
    EventData* data_;
};

class DataEvent : public Event {
  public:
    static const EventType DATA_AVAILABLE;

    class DataEventData : public EventData {
      public:
        explicit DataEventData(Stream* stream);
        Stream* get_Stream() const;

      private:
        Stream* stream_;
    };

    DataEvent(EventType type, DataEventData* data);
};

class ErrorEvent : public Event {
  public:
    static const EventType ERROR_INTERNAL;
    static const EventType ERROR_SYSTEM;
    static const EventType ERROR_USAGE;

    class ErrorEventData : public EventData {
      public:
        ErrorEventData(Rank rank, const char* message);
        Rank get_Rank() const;
        const char* get_Message() const;

      private:
        Rank rank_;
        std::string message_;
    };

    ErrorEvent(EventType type, ErrorEventData* data);
};

class TopologyEvent : public Event {
  public:
    static const EventType TOPOL_ADD_BE;
    static const EventType TOPOL_ADD_CP;
    static const EventType TOPOL_REMOVE_NODE;
    static const EventType TOPOL_CHANGE_PARENT;

    class TopolEventData : public EventData {
      public:
        TopolEventData(Rank rank, Rank parent);
        Rank get_Rank() const;
        Rank get_Parent_Rank() const;

      private:
        Rank rank_;
        Rank parent_;
    };

    TopologyEvent(EventType type, TopolEventData* data);
};

typedef void (*evt_cb_func)(Event* event, void* data);
typedef void (*PipeNotifyCallbackFn)(void);

/* A descriptor that is readable from signal() to clear(). */
class EventPipe {
  public:
    EventPipe();
    ~EventPipe();

    void signal();
    void clear();
    int get_ReadFd() const;

  private:
    EventPipe(const EventPipe&);
    EventPipe& operator=(const EventPipe&);

    int descriptor_;
};

struct evt_cb_info {
    evt_cb_func func;
    void* data;
    EventClass event_class;
    EventType type;
    bool onetime;
};

/* The events of a network, the callbacks, and the descriptors that tell of them. */
class EventMgr {
  public:
    EventMgr();
    ~EventMgr();

    bool add_Event(Event* event);
    Event* get_NextEvent();
    unsigned int get_NumEvents() const;
    void clear_Events();
    bool register_Callback(evt_cb_func function, void* data, EventClass event_class,
                           EventType type, bool once);
    bool remove_Callback(evt_cb_func function, EventClass event_class, EventType type);
    bool remove_Callbacks(EventClass event_class, EventType type);
    bool is_Wanted(EventClass event_class) const;
    EventPipe* get_Pipe(EventClass event_class);
    bool has_Pipe(EventClass event_class) const;
    void close_Pipe(EventClass event_class);
    bool has_Callbacks() const;

    /* Takes the callbacks for an event. */
    std::vector<evt_cb_info> take_Callbacks(const Event& event);

  private:
    EventMgr(const EventMgr&);
    EventMgr& operator=(const EventMgr&);

    std::deque<Event*> events_;
    std::list<evt_cb_info> callbacks_;
    std::map<EventClass, EventPipe*> pipes_;
};

}  // namespace MRN

#endif
