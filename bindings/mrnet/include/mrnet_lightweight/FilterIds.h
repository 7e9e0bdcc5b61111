/*
 * Numbers of filters.
 */
#ifndef MRNET_LIGHTWEIGHT_FILTERIDS_H
#define MRNET_LIGHTWEIGHT_FILTERIDS_H

typedef unsigned short FilterId;

#endif
