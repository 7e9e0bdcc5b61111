/*
 * The filters of these tools, with MRNet's signature; the tree's processes load them.
 *
 * A packet that a filter makes is read after the filter has returned: its arrays are allocated, and the
 * packet is told to free them.
 */
#include <algorithm>
#include <cstring>

#include "fold.hpp"

using namespace MRN;

template <class Element>
static Element* allocated(const std::vector<Element>& elements)
{
    /* One more, since nothing may be allocated for nothing. */
    Element* copy = static_cast<Element*>(malloc((elements.size() + 1) * sizeof(Element)));
    std::copy(elements.begin(), elements.end(), copy);
    return copy;
}

static void push(std::vector<PacketPtr>& out, Packet* packet)
{
    packet->set_DestroyData(true);
    out.push_back(PacketPtr(packet));
}

extern "C" {

/* Equal texts become one, with the ranks of all that have it. */
const char* fold_format_string = "%as %aud %aud";
void fold(std::vector<PacketPtr>& in, std::vector<PacketPtr>& out, std::vector<PacketPtr>&, void**,
          PacketPtr&, const TopologyLocalInfo&)
{
    Fold merged;
    for (PacketPtr& packet : in)
        unfold(packet, merged);
    Columns columns(merged);
    std::vector<char*> texts;
    for (const char* text : columns.texts)
        texts.push_back(strdup(text));
    push(out, new Packet(in[0]->get_StreamId(), in[0]->get_Tag(), "%as %aud %aud", allocated(texts),
                         uint32_t(texts.size()), allocated(columns.counts),
                         uint32_t(columns.counts.size()), allocated(columns.ranks),
                         uint32_t(columns.ranks.size())));
}

/* The largest numbers with the ranks that have them: as many as the first packet says in its first value. */
const char* largest_format_string = "%d %alf %aud";
void largest(std::vector<PacketPtr>& in, std::vector<PacketPtr>& out, std::vector<PacketPtr>&, void**,
             PacketPtr&, const TopologyLocalInfo&)
{
    std::vector<std::pair<double, Rank>> all;
    int wanted = 0;
    for (PacketPtr& packet : in) {
        double* numbers = NULL;
        uint32_t *ranks = NULL, count = 0, rank_count = 0;
        if (packet->unpack("%d %alf %aud", &wanted, &numbers, &count, &ranks, &rank_count) == -1)
            continue;
        for (uint32_t i = 0; i < count && i < rank_count; i++)
            all.emplace_back(-numbers[i], ranks[i]);
        free(numbers), free(ranks);
    }
    /* The number of different values over all ranks. */
    std::sort(all.begin(), all.end());
    std::vector<double> numbers;
    std::vector<uint32_t> ranks;
    int different = 0;
    for (size_t i = 0; i < all.size(); i++) {
        different += i == 0 || all[i].first != all[i - 1].first;
        if (different > wanted)
            break;
        numbers.push_back(-all[i].first);
        ranks.push_back(all[i].second);
    }
    push(out, new Packet(in[0]->get_StreamId(), in[0]->get_Tag(), "%d %alf %aud", wanted,
                         allocated(numbers), uint32_t(numbers.size()), allocated(ranks),
                         uint32_t(ranks.size())));
}
}
