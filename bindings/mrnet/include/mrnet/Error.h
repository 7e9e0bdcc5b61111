/*
 * What can be wrong with a network, a topology or a packet.
 */
#ifndef MRNET_ERROR_H
#define MRNET_ERROR_H

#include <list>

#include "mrnet/Types.h"

namespace MRN {

extern ErrorDef errors[];

/* The last error of an object, with the words that were found for it. */
class Error {
  public:
    Error();
    virtual ~Error();

    bool has_Error() const;
    ErrorCode get_Error() const;
    /* The words of the last error if it has this code, else what the code means. */
    const char* get_ErrorStr(ErrorCode code) const;
    void perror(const char* prefix) const;
    virtual void error(ErrorCode code, Rank rank, const char* format, ...) const
        __attribute__((format(printf, 4, 5)));

  private:
    mutable ErrorCode code_;
    mutable std::string text_;
};

}  // namespace MRN

#endif
