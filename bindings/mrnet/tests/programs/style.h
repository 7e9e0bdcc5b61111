/*
 * What the programs of `sapwood bench mrnet-style` say to each other, in both languages.
 */
#ifndef STYLE_H
#define STYLE_H

enum {
    STYLE_ECHO = 100, /* "%d": send it back */
    STYLE_FLUSHED,    /* "%d": send the numbers from 0 up to this one, with a flush after each */
    STYLE_QUEUED,     /* "%d": the same, with one flush after the last */
    STYLE_EXIT        /* "": the end */
};

#endif
