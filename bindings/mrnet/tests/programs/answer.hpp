/*
 * A back-end in C++ that does what protocol.h says.
 */
#ifndef ANSWER_HPP
#define ANSWER_HPP

#include <unistd.h>

#include <cstdio>

#include "mrnet/MRNet.h"
#include "protocol.h"

#define STREAM MRN::Stream*
#define PACKET MRN::PacketPtr
#define SEND(stream, ...) (stream)->send(__VA_ARGS__)
#define UNPACK(packet, ...) (packet)->unpack(__VA_ARGS__)
#include "directives.h"

#define DEMAND(condition)                                                          \
    do {                                                                           \
        if (!(condition)) {                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            return 1;                                                              \
        }                                                                          \
    } while (0)

#endif
