// sapwood/sketch.hpp: what the sketch filters answer with, to be asked.
//
// A part of sapwood.hpp, which includes it; programs include that.
#ifndef SAPWOOD_SKETCH_HPP
#define SAPWOOD_SKETCH_HPP

#include <sapwood.hpp>

namespace sapwood {

// An item of heavy hitters, a number of `top`, or an item of a union: see sapwood.h.
using SketchEntry = sapwood_sketch_entry_t;
// A bin of a histogram: members `low`, `high`, `count`.
using SketchBin = sapwood_sketch_bin_t;
// A node of a prefix tree: see sapwood.h.
using SketchNode = sapwood_sketch_node_t;

// The string of an entry, as long as its sketch; empty for a number.
inline std::string_view text_of(const SketchEntry &entry) noexcept
{
    return entry.text ? std::string_view(entry.text, entry.text_bytes) : std::string_view();
}
// The frame of a node, as long as its sketch.
inline std::string_view text_of(const SketchNode &node) noexcept
{
    return std::string_view(node.name, node.name_bytes);
}
// The back-ends of an entry or a node, as long as its sketch.
template <class T>
Span<const RankRange> ranks_of(const T &entry) noexcept
{
    return Span<const RankRange>(entry.ranges, entry.range_count);
}

// A sketch that was read out of a packet, which it does not need any more. Plain memory: any thread may
// read it. A question that its kind does not answer throws Misuse.
class Sketch {
public:
    // Throws FormatError for a packet that holds none.
    explicit Sketch(const PacketView &packet)
    {
        detail::check([&](sapwood_error_t *error) {
            return sapwood_sketch_read(handle_.out(), packet.raw(), error);
        });
    }
    // Throws NoValue, too, where the answer has none.
    explicit Sketch(const Answer &answer) : Sketch(answer.value()) {}

    // A sapwood_sketch_kind_t.
    int kind() const noexcept { return sapwood_sketch_kind(handle_.get()); }
    // How many numbers, items or stacks were added.
    std::uint64_t count() const noexcept { return sapwood_sketch_count(handle_.get()); }
    // How many numbers were left out because they are none.
    std::uint64_t left_out() const noexcept { return sapwood_sketch_left_out(handle_.get()); }
    // Whether nothing was cut off for a bound.
    bool is_complete() const noexcept { return sapwood_sketch_is_complete(handle_.get()); }

    // quantiles, kll: the number of which a share (0 to 1) of all is smaller. Throws NoValue when there
    // are no numbers.
    double quantile(double share) const
    {
        return asked<double>([&](double *number, sapwood_error_t *error) {
            return sapwood_sketch_quantile(handle_.get(), share, number, error);
        });
    }
    // quantiles, kll: the smallest and the largest number. Throws NoValue when there are no numbers.
    std::pair<double, double> range() const
    {
        std::pair<double, double> range;
        detail::check([&](sapwood_error_t *error) {
            return sapwood_sketch_range(handle_.get(), &range.first, &range.second, error);
        });
        return range;
    }
    // quantiles: the bound on the relative error of every quantile.
    double relative_error() const
    {
        return asked<double>([&](double *share, sapwood_error_t *error) {
            return sapwood_sketch_relative_error(handle_.get(), share, error);
        });
    }
    // kll: by how many places a quantile may be wrong, by more only with this chance.
    double rank_error(double chance) const
    {
        return asked<double>([&](double *places, sapwood_error_t *error) {
            return sapwood_sketch_rank_error(handle_.get(), chance, places, error);
        });
    }
    // kll: how many numbers are at most this one.
    std::uint64_t rank(double number) const
    {
        return asked<std::uint64_t>([&](std::uint64_t *rank, sapwood_error_t *error) {
            return sapwood_sketch_rank(handle_.get(), number, rank, error);
        });
    }
    // distinct: how many different values there are, about.
    double distinct() const { return estimate().first; }
    // distinct: the standard deviation of that, as a share of the truth.
    double standard_error() const { return estimate().second; }
    // heavy-hitters, top, union: the items, valid as long as this sketch.
    Span<const SketchEntry> entries() const &
    {
        return listed<SketchEntry>(sapwood_sketch_entries);
    }
    Span<const SketchEntry> entries() const && = delete;
    // histogram: its bins from low to high, as long as this sketch.
    Span<const SketchBin> bins() const & { return listed<SketchBin>(sapwood_sketch_bins); }
    Span<const SketchBin> bins() const && = delete;
    // histogram: how many numbers are below and above all bins.
    std::pair<std::uint64_t, std::uint64_t> outside() const
    {
        std::pair<std::uint64_t, std::uint64_t> outside;
        detail::check([&](sapwood_error_t *error) {
            return sapwood_sketch_outside(handle_.get(), &outside.first, &outside.second, error);
        });
        return outside;
    }
    // prefix-tree: its nodes, each before those below it, as long as this sketch.
    Span<const SketchNode> nodes() const & { return listed<SketchNode>(sapwood_sketch_nodes); }
    Span<const SketchNode> nodes() const && = delete;
    // prefix-tree: a line for each node, for people; empty for other kinds.
    std::string text() const
    {
        const char *text = sapwood_sketch_text(handle_.get());
        return text ? text : "";
    }
    const sapwood_sketch_t *raw() const noexcept { return handle_.get(); }

private:
    template <class T, class Ask>
    static T asked(Ask &&ask)
    {
        T given{};
        detail::check([&](sapwood_error_t *error) { return ask(&given, error); });
        return given;
    }

    template <class T>
    Span<const T> listed(int (*list)(const sapwood_sketch_t *, const T **, std::size_t *,
                                     sapwood_error_t *)) const
    {
        const T *first = nullptr;
        std::size_t count = 0;
        detail::check([&](sapwood_error_t *error) { return list(handle_.get(), &first, &count, error); });
        return Span<const T>(first, count);
    }

    std::pair<double, double> estimate() const
    {
        std::pair<double, double> estimate;
        detail::check([&](sapwood_error_t *error) {
            return sapwood_sketch_distinct(handle_.get(), &estimate.first, &estimate.second, error);
        });
        return estimate;
    }

    detail::Handle<sapwood_sketch_t, detail::free_of<sapwood_sketch_t, sapwood_sketch_free>> handle_;
};

}  // namespace sapwood

#endif  // SAPWOOD_SKETCH_HPP
