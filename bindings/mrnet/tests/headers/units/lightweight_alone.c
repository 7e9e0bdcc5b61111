/*
 * What a tool has that includes nothing but mrnet_lightweight/MRNet.h, behind the names that
 * <rpc/types.h> has.
 */
typedef int bool_t;
typedef int enum_t;

#include "mrnet_lightweight/MRNet.h"

#include "../check.h"

static int number_of(Packet_t *packet)
{
    int number = 0;
    return Packet_unpack(packet, "%d", &number) == 0 ? number : -1;
}

int main(void)
{
    char text[64];
    struct timeval now;
    bool is_good = true;
    bool_t wide = -7;
    char_t letter = 'a';
    uchar_t byte = 255;
    Packet_t *packet = (Packet_t *)malloc(sizeof(Packet_t));
    assert(packet != NULL);
    free(packet);
    snprintf(text, sizeof text, "%" PRIu64 " %" PRIszt, UINT64_MAX, sizeof text);
    DEMAND(strcmp(text, "18446744073709551615 64") == 0 && is_good != false);
    DEMAND(usleep(1) == 0 && gettimeofday(&now, NULL) == 0 && now.tv_sec > 0 && errno == 0);
    DEMAND(gethostbyname("localhost") != NULL && htons(1) != 0 && getpid() > 0);
    DEMAND(wide == -7 && letter + byte == 352 && INT_MAX > SHRT_MAX);
    Monitor_t *monitor = Monitor_construct();
    DEMAND(monitor != NULL && Monitor_Lock(monitor) == 0 && Monitor_Unlock(monitor) == 0);
    DEMAND(Monitor_destruct(monitor) == 0 && InvalidPort == UnknownPort && InvalidSocket == -1);
    DEMAND(UnknownRank == (Rank)-1 && UnknownPort == (Port)-1 && INVALID_STREAM_ID == (unsigned int)-1);
    ErrorDef words = {ERR_SYSTEM, ERR_WARN, ERR_RETRY, "words"};
    perfdata_metinfo_t metric = {"packets", "", "", PERFDATA_TYPE_UINT};
    DEMAND(words.level == 1 && metric.type == PERFDATA_TYPE_UINT && PERFDATA_MAX_MET == 7);
    DEMAND(PERFDATA_MAX_CTX == 16 && PERFDATA_PKT_TIMERS_MAX == 9 && NODE_TYPE_INTERNALNODE == 2);
    packet = new_Packet_t_2(7, FirstApplicationTag, "%d", 5);
    DEMAND(packet != NULL && number_of(packet) == 5);
    Packet_set_DestroyData(packet, wide);
    delete_Packet_t(packet);
    return 0;
}
