/*
 * Texts and the ranks that have them: what the filter `fold` (filters.cpp) merges, and what the tools
 * make of it. A packet is "%as %aud %aud": the texts, how many ranks each has, and the ranks.
 */
#ifndef FOLD_HPP
#define FOLD_HPP

#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "mrnet/MRNet.h"

typedef std::map<std::string, std::set<MRN::Rank>> Fold;

/* Adds what a packet has; false if it is of another format. */
inline bool unfold(MRN::PacketPtr& packet, Fold& fold)
{
    char** texts = NULL;
    uint32_t *counts = NULL, *ranks = NULL, text_count = 0, count_count = 0, rank_count = 0, at = 0;
    if (packet->unpack("%as %aud %aud", &texts, &text_count, &counts, &count_count, &ranks,
                       &rank_count) == -1)
        return false;
    for (uint32_t i = 0; i < text_count; i++) {
        for (uint32_t end = at + counts[i]; at < end && at < rank_count; at++)
            fold[texts[i]].insert(ranks[at]);
        free(texts[i]);
    }
    free(texts), free(counts), free(ranks);
    return true;
}

/* Its texts and numbers side by side, to be sent. */
struct Columns {
    std::vector<const char*> texts;
    std::vector<uint32_t> counts, ranks;

    explicit Columns(const Fold& fold)
    {
        for (const auto& [text, holders] : fold) {
            texts.push_back(text.c_str());
            counts.push_back(uint32_t(holders.size()));
            ranks.insert(ranks.end(), holders.begin(), holders.end());
        }
    }

    int send(MRN::Stream* stream, int tag)
    {
        return stream->send(tag, "%as %aud %aud", texts.data(), uint32_t(texts.size()),
                            counts.data(), uint32_t(counts.size()), ranks.data(),
                            uint32_t(ranks.size())) == -1 ? -1 : stream->flush();
    }
};

/* Ranks as ranges: "0-3,7". */
inline std::string words_of(const std::set<MRN::Rank>& ranks)
{
    std::string words;
    for (auto rank = ranks.begin(); rank != ranks.end();) {
        MRN::Rank first = *rank, last = first;
        while (++rank != ranks.end() && *rank == last + 1)
            last = *rank;
        words += (words.empty() ? "" : ",") + std::to_string(first);
        words += last > first ? "-" + std::to_string(last) : "";
    }
    return words;
}

/* A text in which `{rank}` stands for a back-end's rank. */
inline std::string for_rank(std::string text, MRN::Rank rank)
{
    size_t mark = text.find("{rank}");
    return mark == std::string::npos ? text : text.replace(mark, 6, std::to_string(rank));
}

/* The filters' library, which lies beside the tools. */
inline std::string filter_library()
{
    char* own = realpath("/proc/self/exe", NULL);
    std::string path = own == NULL ? "" : own;
    free(own);
    return path.substr(0, path.rfind('/') + 1) + "filters.so";
}

#endif
