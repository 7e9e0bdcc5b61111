/* gone BACK_END: a send ends with an error when the last back-end has gone that had not read. */
#include "check.h"

/* More than a process keeps of a stream. */
enum { LOAD_COUNT = 140000, SENDS = 8 };

static sapwood_error_t error;
static double load[LOAD_COUNT];

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    sapwood_network_t *network = NULL;
    sapwood_stream_t *stream = NULL;
    options.topology = "1";
    options.back_end_argv = (const char *const *)argv + 1;
    OK(sapwood_network_open(&network, &options, &error));
    OK(sapwood_stream_open(&stream, network, NULL, NULL, &error));
    OK(sapwood_stream_broadcast(stream, TAG_END, &error, "%d", 0));
    int code = SAPWOOD_OK;
    for (int at = 0; at < SENDS && code == SAPWOOD_OK; at++)
        code = sapwood_stream_broadcast(stream, TAG_DOUBLES, &error, "%alf", load,
                                        (uint32_t)LOAD_COUNT);
    CHECK(code == SAPWOOD_ERROR_NO_MEMBER_LEFT);
    REFUSED(sapwood_stream_broadcast(stream, TAG_END, &error, "%d", 0), NO_MEMBER_LEFT, "0: ");
    OK(sapwood_stream_close(&stream, &error));
    OK(sapwood_network_close(&network, &error));
    return 0;
}
