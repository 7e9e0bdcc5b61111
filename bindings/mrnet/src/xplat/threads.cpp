/*
 * Threads, and what each has of its own.
 */
#include <pthread.h>

#include "xplat/TLSKey.h"
#include "xplat/Thread.h"

namespace XPlat {

int Thread::Create(Func function, void* data, Id* id)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, function, data);
    if (error == 0 && id != NULL)
        *id = thread;
    return error;
}

Thread::Id Thread::GetId()
{
    return pthread_self();
}

int Thread::Join(Id id, void** result)
{
    return pthread_join(id, result);
}

int Thread::Cancel(Id id)
{
    return pthread_cancel(id);
}

void Thread::Exit(void* result)
{
    pthread_exit(result);
}

namespace {

/* A thread that ends leaves its place, but not the name and the data, which are the tool's. */
void drop(void* place)
{
    delete static_cast<tls_t*>(place);
}

}  // namespace

class TLSKey::Data {
  public:
    Data() : error(pthread_key_create(&key, drop)) {}
    ~Data()
    {
        if (error == 0)
            pthread_key_delete(key);
    }

    tls_t* place() const
    {
        return error == 0 ? static_cast<tls_t*>(pthread_getspecific(key)) : NULL;
    }

    int put(tls_t* place) { return error == 0 ? pthread_setspecific(key, place) : error; }

  private:
    pthread_key_t key;
    int error;
};

TLSKey::TLSKey() : data_(new Data) {}

TLSKey::~TLSKey()
{
    delete data_;
}

int TLSKey::InitTLS(const char* name, void* user_data)
{
    if (name == NULL)
        return -1;
    tls_t* place = data_->place();
    bool is_new = place == NULL;
    if (is_new)
        place = new tls_t;
    *place = {Thread::GetId(), name, user_data};
    int error = is_new ? data_->put(place) : 0;
    if (error != 0)
        delete place;
    return error;
}

Thread::Id TLSKey::GetTid() const
{
    const tls_t* place = data_->place();
    return place == NULL ? 0 : place->tid;
}

int TLSKey::SetTid(Thread::Id id)
{
    tls_t* place = data_->place();
    if (place == NULL)
        return -1;
    place->tid = id;
    return 0;
}

const char* TLSKey::GetName() const
{
    const tls_t* place = data_->place();
    return place == NULL ? NULL : place->tname;
}

int TLSKey::SetName(const char* name)
{
    tls_t* place = data_->place();
    if (place == NULL)
        return -1;
    place->tname = name;
    return 0;
}

void* TLSKey::GetUserData() const
{
    const tls_t* place = data_->place();
    return place == NULL ? NULL : place->user_data;
}

int TLSKey::SetUserData(void* user_data)
{
    tls_t* place = data_->place();
    if (place == NULL)
        return -1;
    place->user_data = user_data;
    return 0;
}

int TLSKey::DestroyData()
{
    tls_t* place = data_->place();
    if (place == NULL || place->user_data != NULL)
        return -1;
    free(const_cast<char*>(place->tname));
    delete place;
    return data_->put(NULL) == 0 ? 0 : -1;
}

/* Never deleted: threads may end after everything else of the process. */
TLSKey* XPlat_TLSKey = new TLSKey;

}  // namespace XPlat
