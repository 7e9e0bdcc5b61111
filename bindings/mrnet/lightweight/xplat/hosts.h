/*
 * What both languages ask of names of hosts beside what the header in C has.
 */
#ifndef MRN_XPLAT_HOSTS_H
#define MRN_XPLAT_HOSTS_H

#ifdef __cplusplus
extern "C" {
#endif

struct addrinfo;

/* Whether a text is an address in numbers. */
int mrn_is_address(const char *text);
/* A host's addresses; -1 with errno if it has none. */
int mrn_addresses(const char *host, int flags, struct addrinfo **found);

#ifdef __cplusplus
}
#endif

#endif
