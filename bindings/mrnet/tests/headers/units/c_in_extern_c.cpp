/*
 * Tools in C++ take the headers in C into a block of C linkage, behind those of remote procedure
 * calls.
 */
typedef int bool_t;
typedef int enum_t;

extern "C" {
#include "mrnet_lightweight/MRNet.h"
}

#include "../check.h"

int main()
{
    bool_t is_good = 1;
    int number = 0;
    Packet_t* packet = new_Packet_t_2(7, FirstApplicationTag, "%d", 5);
    DEMAND(packet != NULL && Packet_unpack(packet, "%d", &number) == 0 && number == 5);
    Packet_set_DestroyData(packet, is_good);
    delete_Packet_t(packet);
    DEMAND(UnknownRank == 0xffffffffu && UnknownPort == 65535 && CHAR_T != UCHAR_T);
    return 0;
}
