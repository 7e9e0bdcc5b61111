/*
 * Shared objects that are loaded while the program runs.
 */
#ifndef XPLAT_SHAREDOBJECT_H
#define XPLAT_SHAREDOBJECT_H

#include <cstring>

namespace XPlat {

class SharedObject {
  public:
    /* One for the caller to delete, which unloads it; NULL if it cannot be loaded. */
    static SharedObject* Load(const char* path);
    /* Why the calling thread's last Load or GetSymbol gave NULL. */
    static const char* GetErrorString();

    virtual ~SharedObject();

    virtual const char* GetPath() const;
    /* NULL if there is no such symbol. */
    virtual void* GetSymbol(const char* name) const = 0;
    virtual void* GetHandle() const = 0;

  protected:
    SharedObject(const char* path);

  private:
    SharedObject(const SharedObject&);
    SharedObject& operator=(const SharedObject&);

    char* path_;
};

}  // namespace XPlat

#endif
