/*
 * Performance data of streams.
 */
#ifndef MRNET_PERFORMANCE_HPP
#define MRNET_PERFORMANCE_HPP

#include "engine.hpp"

namespace MRN {

bool is_measurable(perfdata_metric_t metric, perfdata_context_t context);
/* With the engine's lock held. */
bool collect_measured(Engine& engine, StreamContents& stream, rank_perfdata_map& by_rank,
                      perfdata_metric_t metric, perfdata_context_t context, int aggregation);
void print_measured(unsigned int stream, const rank_perfdata_map& by_rank,
                    perfdata_metric_t metric, perfdata_context_t context);

}  // namespace MRN

#endif
