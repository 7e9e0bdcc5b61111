/*
 * Performance data: one row from every process, and what a metric makes of it.
 *
 * Time and memory are those of the whole process. Bytes and packets are those that the tool has sent
 * and received on the stream; communication processes have none of their own.
 */
#include "performance.hpp"

#include "front_end.hpp"

namespace MRN {

namespace {

const perfdata_metinfo_t METRICS[PERFDATA_MAX_MET] = {
    {"bytes", "bytes", "bytes of values", PERFDATA_TYPE_UINT},
    {"packets", "packets", "packets", PERFDATA_TYPE_UINT},
    {"elapsed", "seconds", "time since the process began", PERFDATA_TYPE_FLOAT},
    {"system", "percent", "processor time in the kernel", PERFDATA_TYPE_FLOAT},
    {"user", "percent", "processor time in the program", PERFDATA_TYPE_FLOAT},
    {"virtual", "KiB", "address space", PERFDATA_TYPE_UINT},
    {"physical", "KiB", "memory", PERFDATA_TYPE_UINT},
};

/* What the columns of a row are. */
enum { USER_S, SYSTEM_S, AGE_S, VIRTUAL_KIB, PHYSICAL_KIB, BYTES_SENT };

bool is_sending(perfdata_context_t context)
{
    return context == PERFDATA_CTX_SEND || context == PERFDATA_CTX_FILT_OUT ||
           context == PERFDATA_CTX_SYNCFILT_OUT || context == PERFDATA_CTX_PKT_SEND ||
           context == PERFDATA_CTX_PKT_NET_SENDCHILD || context == PERFDATA_CTX_PKT_NET_SENDPAR;
}

double measure(const std::vector<double>& row, perfdata_metric_t metric, perfdata_context_t context)
{
    size_t traffic = is_sending(context) ? 0 : 2;
    switch (metric) {
    case PERFDATA_MET_NUM_BYTES: return row[BYTES_SENT + traffic];
    case PERFDATA_MET_NUM_PKTS: return row[BYTES_SENT + traffic + 1];
    case PERFDATA_MET_CPU_SYS_PCT: return row[AGE_S] > 0 ? 100 * row[SYSTEM_S] / row[AGE_S] : 0;
    case PERFDATA_MET_CPU_USR_PCT: return row[AGE_S] > 0 ? 100 * row[USER_S] / row[AGE_S] : 0;
    case PERFDATA_MET_MEM_VIRT_KB: return row[VIRTUAL_KIB];
    case PERFDATA_MET_MEM_PHYS_KB: return row[PHYSICAL_KIB];
    default: return row[AGE_S];
    }
}

perfdata_t as_data(double value, perfdata_metric_t metric)
{
    perfdata_t data;
    if (METRICS[metric].type == PERFDATA_TYPE_FLOAT)
        data.d = value;
    else
        data.u = uint64_t(value);
    return data;
}

}  // namespace

bool is_measurable(perfdata_metric_t metric, perfdata_context_t context)
{
    return metric >= PERFDATA_MET_NUM_BYTES && metric < PERFDATA_MAX_MET &&
           context >= PERFDATA_CTX_NONE && context < PERFDATA_MAX_CTX;
}

bool collect_measured(Engine& engine, StreamContents& stream, rank_perfdata_map& by_rank,
                      perfdata_metric_t metric, perfdata_context_t context, int aggregation)
{
    std::map<Rank, std::vector<double>> rows;
    if (!engine.is_front_end() || stream.measured.count({metric, context}) == 0)
        return false;
    if (!static_cast<FrontEnd&>(engine).collect_rows(stream.id, rows))
        return false;
    const double own[] = {double(stream.bytes_sent), double(stream.packets_sent),
                          double(stream.bytes_received), double(stream.packets_received)};
    std::vector<double>& own_row = rows[engine.rank];
    own_row.resize(ROW_COLUMNS);
    std::copy(own, own + TRAFFIC_COLUMNS, own_row.begin() + USAGE_COLUMNS);
    double sum = 0, least = 0, most = 0;
    size_t count = 0;
    for (const auto& row : rows) {
        double value = measure(row.second, metric, context);
        sum += value;
        least = count == 0 || value < least ? value : least;
        most = count == 0 || value > most ? value : most;
        count++;
        if (aggregation == TFILTER_ARRAY_CONCAT)
            by_rank[row.first].push_back(as_data(value, metric));
    }
    if (aggregation == TFILTER_ARRAY_CONCAT)
        return true;
    double value = aggregation == TFILTER_SUM   ? sum
                   : aggregation == TFILTER_AVG ? sum / double(count)
                   : aggregation == TFILTER_MIN ? least
                                                : most;
    by_rank[engine.rank].push_back(as_data(value, metric));
    return true;
}

void print_measured(unsigned int stream, const rank_perfdata_map& by_rank,
                    perfdata_metric_t metric, perfdata_context_t context)
{
    const perfdata_metinfo_t& info = METRICS[metric];
    for (const auto& entry : by_rank)
        for (const perfdata_t& data : entry.second)
            mrn_printf(NULL, 0, NULL, NULL, "stream %u context %d rank %u %s: %g %s\n", stream,
                       int(context), entry.first, info.name,
                       info.type == PERFDATA_TYPE_FLOAT ? data.d : double(data.u), info.units);
}

}  // namespace MRN
