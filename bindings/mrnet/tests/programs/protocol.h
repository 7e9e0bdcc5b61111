/*
 * What front-ends and back-ends of these tests say to each other, in both languages.
 */
#ifndef PROTOCOL_H
#define PROTOCOL_H

enum {
    TAG_SUM = 100,    /* "%d": send it back */
    TAG_RANK,         /* "": send the own rank as "%ud" */
    TAG_CLASS,        /* "%ud": send a class of one, rank modulo this number */
    TAG_TWICE,        /* "%d": send it back, twice */
    TAG_QUIET,        /* "": nothing is sent */
    TAG_BAD,          /* "": send a packet with a malformed format, then say so with "%d" */
    TAG_MIXED,        /* "": send "%d" or "%lf", by rank */
    TAG_ARRAY,        /* "%d": send the own rank this many times, as "%ad" */
    TAG_SLOW,         /* "%d": all but rank 0 send 1; rank 0 sends this many milliseconds later */
    TAG_INSPECT,      /* "": look at everything that a back-end can ask, then send "%d", 1 if good */
    TAG_LEAVE,        /* "": end without a word */
    TAG_EXIT,         /* "": the end */
    TAG_EMPTY,        /* "": send a packet without a format */
    TAG_FILTERS,      /* "": send the numbers of the stream's filters, if they are known, as "%ud %ud %ud" */
    TAG_ECHO = 130    /* "%d": send it back, as the benchmarks' own back-ends do */
};

#endif
