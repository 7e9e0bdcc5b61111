/* The shim's only words: single lines on standard error. */
#ifndef SAPWOOD_SAY_H
#define SAPWOOD_SAY_H

/* Writes "sapwood: ..." and a line end with one write(2). */
__attribute__((format(printf, 1, 2))) void sapwood_say(const char *format, ...);

#endif
