/*
 * mrnet/Stream.h by itself brings in the network that streams belong to.
 */
#include "mrnet/Stream.h"

#include "../check.h"

int main()
{
    char word[] = "no-place";
    char* words[] = {word, NULL};
    MRN::Network* network = MRN::Network::CreateNetworkBE(1, words);
    MRN::Stream* (MRN::Network::*function)(unsigned int) const = &MRN::Network::get_Stream;
    MRN::Event* event = NULL;
    DEMAND(network == NULL && function != NULL && event == NULL);
    return 0;
}
