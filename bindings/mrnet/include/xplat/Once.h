/*
 * Something that is done once, whichever thread comes first.
 */
#ifndef XPLAT_ONCE_H
#define XPLAT_ONCE_H

extern "C" {
typedef void (*OnceFunc)(void);
}

namespace XPlat {

class Once {
  public:
    Once();
    virtual ~Once();

    /* Gives 0 when the function has run, here or in another thread. */
    virtual int DoOnce(OnceFunc function);

    class Data;

  private:
    Once(const Once&);
    Once& operator=(const Once&);

    Data* data_;
};

}  // namespace XPlat

#endif
