/* The header by itself: compiled as C11 and as C++17, with every warning an error. */
#include <sapwood.h>

int options_fit(void);

int options_fit(void)
{
    sapwood_network_options_t network = SAPWOOD_NETWORK_OPTIONS_INIT;
    sapwood_stream_options_t stream = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_error_t error;
    error.code = SAPWOOD_OK;
    return network.size > stream.size && sizeof error.text == SAPWOOD_ERROR_TEXT_BYTES;
}
