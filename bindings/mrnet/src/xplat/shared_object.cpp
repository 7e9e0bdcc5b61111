/*
 * Shared objects that are loaded while the program runs.
 */
#include "xplat/SharedObject.h"

#include <dlfcn.h>

#include <string>

namespace XPlat {

namespace {

thread_local std::string reason;

void keep_reason()
{
    const char* found = dlerror();
    reason = found == NULL ? "" : found;
}

class Loaded : public SharedObject {
  public:
    Loaded(const char* path, void* handle) : SharedObject(path), handle_(handle) {}
    ~Loaded() override { dlclose(handle_); }

    void* GetSymbol(const char* name) const override
    {
        void* found = dlsym(handle_, name);
        if (found == NULL)
            keep_reason();
        return found;
    }

    void* GetHandle() const override { return handle_; }

  private:
    void* handle_;
};

}  // namespace

SharedObject::SharedObject(const char* path) : path_(NULL)
{
    if (path == NULL)
        return;
    path_ = new char[strlen(path) + 1];
    strcpy(path_, path);
}

SharedObject::~SharedObject()
{
    delete[] path_;
}

SharedObject* SharedObject::Load(const char* path)
{
    void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL)
        return new Loaded(path, handle);
    keep_reason();
    return NULL;
}

const char* SharedObject::GetErrorString()
{
    return reason.c_str();
}

const char* SharedObject::GetPath() const
{
    return path_;
}

}  // namespace XPlat
