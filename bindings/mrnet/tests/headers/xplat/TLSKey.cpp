/*
 * xplat/TLSKey.h by itself: each thread has its own.
 */
#include "xplat/TLSKey.h"

#include "../check.h"

using XPlat::Thread;
using XPlat::TLSKey;
using XPlat::XPlat_TLSKey;

static char* copy(const char* text)
{
    char* place = static_cast<char*>(malloc(8));
    for (int at = 0; (place[at] = text[at]) != '\0'; at++)
        continue;
    return place;
}

static long use(TLSKey* key)
{
    int data = 5;
    DEMAND(key->GetTid() == 0 && key->GetName() == NULL && key->GetUserData() == NULL);
    DEMAND(key->SetTid(1) == -1 && key->SetName("no") == -1 && key->SetUserData(&data) == -1);
    DEMAND(key->DestroyData() == -1 && key->InitTLS(NULL, &data) == -1);
    char* first = copy("first");
    DEMAND(key->InitTLS(first, &data) == 0 && key->GetTid() == Thread::GetId());
    DEMAND(key->GetName() == first && key->GetUserData() == &data);
    DEMAND(key->SetTid(77) == 0 && key->GetTid() == 77 && key->DestroyData() == -1);
    DEMAND(key->SetName(copy("second")) == 0 && key->GetName()[0] == 's');
    free(first);
    DEMAND(key->SetUserData(NULL) == 0 && key->GetUserData() == NULL);
    DEMAND(key->DestroyData() == 0 && key->GetName() == NULL && key->DestroyData() == -1);
    return 0;
}

static void* use_in_thread(void* key)
{
    return reinterpret_cast<void*>(use(static_cast<TLSKey*>(key)));
}

/* Ends without having taken its place away. */
static void* leave(void* key)
{
    static_cast<TLSKey*>(key)->InitTLS("left", NULL);
    return NULL;
}

int main()
{
    TLSKey own;
    Thread::Id id;
    void* result = NULL;
    XPlat::tls_t place = {1, "name", NULL};
    DEMAND(place.tid == 1 && place.user_data == NULL && place.tname[0] == 'n' && EPERM != 0);
    DEMAND(own.InitTLS("main", &own) == 0);
    DEMAND(Thread::Create(use_in_thread, &own, &id) == 0 && Thread::Join(id, &result) == 0);
    DEMAND(result == NULL && own.GetUserData() == &own);
    DEMAND(Thread::Create(leave, &own, &id) == 0 && Thread::Join(id, NULL) == 0);
    DEMAND(own.SetUserData(NULL) == 0 && own.SetName(NULL) == 0 && own.DestroyData() == 0);
    DEMAND(XPlat_TLSKey != NULL);
    return int(use(XPlat_TLSKey));
}
