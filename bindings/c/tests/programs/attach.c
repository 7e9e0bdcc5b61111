/*
 * attach FOLDER: a network of a topology file, whose back-ends attach by themselves. Writes FOLDER/points and FOLDER/key,
 * waits for four back-ends, and adds up their ranks.
 */
#include "check.h"

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    static const char tree[] = "localhost:0 => localhost:1 localhost:2;\n"
                               "localhost:1 => localhost:3 localhost:4;\n"
                               "localhost:2 => localhost:5 localhost:6;\n";
    sapwood_error_t error;
    sapwood_network_options_t options = SAPWOOD_NETWORK_OPTIONS_INIT;
    sapwood_stream_options_t stream_options = SAPWOOD_STREAM_OPTIONS_INIT;
    sapwood_network_t *network = NULL;
    sapwood_stream_t *stream = NULL;
    sapwood_answer_t *answer = NULL;
    const sapwood_packet_t *packet = NULL;
    char path[256], key[256], part[256];
    int32_t sum = 0;
    options.topology_file_text = tree;
    stream_options.up = "sum";
    OK(sapwood_network_open(&network, &options, &error));
    CHECK(strstr(sapwood_network_attach_points(network), "0-1") != NULL);
    snprintf(part, sizeof part, "%s/part", argv[1]);
    snprintf(path, sizeof path, "%s/points", argv[1]);
    snprintf(key, sizeof key, "%s/key", argv[1]);
    REFUSED(sapwood_network_write_attach_file(network, path, NULL, &error), USAGE, "key file: is NULL");
    OK(sapwood_network_write_attach_file(network, part, key, &error));
    CHECK(rename(part, path) == 0); /* so that it is whole when it is seen */
    OK(sapwood_network_wait_for_back_ends(network, 4, HANG_MS, &error));
    OK(sapwood_stream_open(&stream, network, NULL, &stream_options, &error));
    OK(sapwood_stream_broadcast(stream, TAG_RANK, &error, "%d", 0));
    OK(sapwood_stream_recv(stream, &answer, HANG_MS, &error));
    OK(sapwood_answer_value(answer, &packet, &error));
    OK(sapwood_packet_read(packet, &error, "%d", &sum));
    CHECK(sum == 6 && sapwood_answer_is_complete(answer));
    sapwood_answer_free(&answer);
    OK(sapwood_stream_close(&stream, &error));
    OK(sapwood_network_close(&network, &error));
    return 0;
}
