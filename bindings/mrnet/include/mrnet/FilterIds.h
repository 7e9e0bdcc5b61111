/*
 * Numbers of the filters that every network knows.
 */
#ifndef MRNET_FILTERIDS_H
#define MRNET_FILTERIDS_H

#include "mrnet/Types.h"

namespace MRN {

typedef unsigned short FilterId;

extern FilterId TFILTER_NULL;
extern FilterId TFILTER_SUM;
extern FilterId TFILTER_AVG;
extern FilterId TFILTER_MAX;
extern FilterId TFILTER_MIN;
extern FilterId TFILTER_ARRAY_CONCAT;
extern FilterId TFILTER_TOPO_UPDATE;
extern FilterId TFILTER_TOPO_UPDATE_DOWNSTREAM;
extern FilterId TFILTER_INT_EQ_CLASS;
extern FilterId TFILTER_PERFDATA;

extern FilterId SFILTER_DONTWAIT;
extern FilterId SFILTER_WAITFORALL;
extern FilterId SFILTER_TIMEOUT;

}  // namespace MRN

#endif
