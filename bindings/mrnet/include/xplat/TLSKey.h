/*
 * What each thread has of its own: its number, a name, and something of the tool's.
 */
#ifndef XPLAT_TLSKEY_H
#define XPLAT_TLSKEY_H

#include <cerrno>
#include <cstdlib>

#include "xplat/Monitor.h"
#include "xplat/Thread.h"

namespace XPlat {

typedef struct {
    Thread::Id tid;
    const char* tname;
    void* user_data;
} tls_t;

class TLSKey {
  public:
    TLSKey();
    virtual ~TLSKey();

    /* Gives the calling thread a place under the key; 0, or the number of a system error, or -1
       without a name. The others give -1, 0 or NULL in a thread that has none. */
    virtual int InitTLS(const char* name, void* user_data);
    virtual Thread::Id GetTid() const;
    virtual int SetTid(Thread::Id id);
    virtual const char* GetName() const;
    virtual int SetName(const char* name);
    virtual void* GetUserData() const;
    virtual int SetUserData(void* user_data);
    /* Takes the place away and frees the name, which malloc must have given; -1 while there is user
       data, which is the caller's to free. */
    virtual int DestroyData();

    class Data;

  private:
    TLSKey(const TLSKey&);
    TLSKey& operator=(const TLSKey&);

    Data* data_;
};

/* The key that all parts of a process may share. */
extern TLSKey* XPlat_TLSKey;

}  // namespace XPlat

#endif
