/*
 * Numbers of the filters that Paradyn used. No network knows them: a stream with one is refused.
 */
#ifndef MRNET_PARADYNFILTERIDS_H
#define MRNET_PARADYNFILTERIDS_H

#include "mrnet/FilterIds.h"

namespace MRN {

extern FilterId TFILTER_SAVE_LOCAL_CLOCK_SKEW_UPSTREAM;
extern FilterId TFILTER_SAVE_LOCAL_CLOCK_SKEW_DOWNSTREAM;
extern FilterId TFILTER_GET_CLOCK_SKEW;
extern FilterId TFILTER_PD_UINT_EQ_CLASS;

}  // namespace MRN

#endif
