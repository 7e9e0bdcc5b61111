// sapwood/answer.hpp: packets, and answers with their contributors and the missing back-ends.
//
// A part of sapwood.hpp, which includes it; programs include that.
#ifndef SAPWOOD_ANSWER_HPP
#define SAPWOOD_ANSWER_HPP

#include <sapwood/values.hpp>

#include <optional>

namespace sapwood {

// A range of ranks: members `first` and `last`, both in it.
using RankRange = sapwood_rank_range_t;

// Back-ends that an answer lacks for one reason: members `ranks`, `reason`, `ranges`, `range_count`,
// `cause` and `cause_detail`, an exit status or signal.
using Missing = sapwood_missing_t;

// Why back-ends are missing, as sapwood_cause_t has it; a later version may have further causes.
enum class Cause : int {
    other = SAPWOOD_CAUSE_OTHER,
    left = SAPWOOD_CAUSE_LEFT,
    died = SAPWOOD_CAUSE_DIED,
    exited = SAPWOOD_CAUSE_EXITED,
    killed = SAPWOOD_CAUSE_KILLED,
    silent = SAPWOOD_CAUSE_SILENT,
    never_started = SAPWOOD_CAUSE_NEVER_STARTED,
    late = SAPWOOD_CAUSE_LATE,
    skipped = SAPWOOD_CAUSE_SKIPPED,
    away = SAPWOOD_CAUSE_AWAY,
    filter_failed = SAPWOOD_CAUSE_FILTER_FAILED,
    refused = SAPWOOD_CAUSE_REFUSED,
    out_of_memory = SAPWOOD_CAUSE_OUT_OF_MEMORY,
};

inline Cause cause_of(const Missing &missing) noexcept { return static_cast<Cause>(missing.cause); }

// A packet that another object holds: it is valid as long as the Packet or Answer that has lent it.
class PacketView {
public:
    explicit PacketView(const sapwood_packet_t *raw = nullptr) noexcept : raw_(raw) {}
    std::int32_t tag() const noexcept { return sapwood_packet_tag(raw_); }
    // The stream that it came on.
    std::uint32_t stream() const noexcept { return sapwood_packet_stream(raw_); }
    // The rank that made it.
    std::uint32_t origin() const noexcept { return sapwood_packet_origin(raw_); }
    // Such as "%d %alf"; as long as the packet.
    std::string_view format() const noexcept
    {
        const char *format = sapwood_packet_format(raw_);
        return format ? format : "";
    }
    // All values: one alone, several as a tuple. T is a number, std::string, std::string_view,
    // const char *, or Span<const N>, std::vector<N> of numbers, Span<const char *const>,
    // std::vector<std::string>. Throws FormatError if the packet holds something else.
    template <class... T>
    auto read() const
    {
        static_assert(sizeof...(T) > 0, "name the types of the values");
        return detail::read<T...>(raw_, std::index_sequence_for<T...>{});
    }
    const sapwood_packet_t *raw() const noexcept { return raw_; }

protected:
    const sapwood_packet_t *raw_;
};

// A packet that has been received.
class Packet : public PacketView {
public:
    Packet(Packet &&other) noexcept : PacketView(other), handle_(std::move(other.handle_))
    {
        other.raw_ = nullptr;
    }
    Packet &operator=(Packet &&other) noexcept
    {
        handle_ = std::move(other.handle_);
        raw_ = handle_.get();
        if (this != &other)
            other.raw_ = nullptr;
        return *this;
    }

private:
    friend class BackEnd;
    using Handle = detail::Handle<sapwood_packet_t, detail::free_of<sapwood_packet_t, sapwood_packet_free>>;

    explicit Packet(Handle &&handle) noexcept : PacketView(handle.get()), handle_(std::move(handle)) {}
    Handle handle_;
};

// The result of one wave. Plain memory: any thread may read it, and it outlives its network.
class Answer {
public:
    // The value, as long as this answer. Throws NoValue, which names the missing back-ends with
    // reasons.
    PacketView value() const &
    {
        const sapwood_packet_t *packet = nullptr;
        detail::check([&](sapwood_error_t *error) {
            return sapwood_answer_value(handle_.get(), &packet, error);
        });
        return PacketView(packet);
    }
    PacketView value() const && = delete;
    // The value's values; see PacketView::read.
    template <class... T>
    auto read() const &
    {
        return value().template read<T...>();
    }
    template <class... T>
    auto read() const && = delete;
    std::uint64_t wave() const noexcept { return sapwood_answer_wave(handle_.get()); }
    // The number of the front-end's packet that it answers, counted from 0 in each stream; none for
    // what back-ends have sent unasked.
    std::optional<std::uint64_t> question() const noexcept
    {
        std::uint64_t number = 0;
        return sapwood_answer_question(handle_.get(), &number) ? std::optional<std::uint64_t>(number)
                                                               : std::nullopt;
    }
    std::uint32_t stream() const noexcept { return sapwood_answer_stream(handle_.get()); }
    // Whether there is a value and every member of the stream is in it.
    bool is_complete() const noexcept { return sapwood_answer_is_complete(handle_.get()); }
    // Whether the wave had been answered before this part of it came.
    bool is_late() const noexcept { return sapwood_answer_is_late(handle_.get()); }
    std::uint64_t contributor_count() const noexcept
    {
        return sapwood_answer_contributor_count(handle_.get());
    }
    // The back-ends that the value stands for, as long as this answer.
    Span<const RankRange> contributors() const noexcept
    {
        std::size_t count = 0;
        const RankRange *ranges = sapwood_answer_contributors(handle_.get(), &count);
        return Span<const RankRange>(ranges, count);
    }
    // The back-ends that it lacks, grouped by reason, as long as this answer.
    Span<const Missing> missing() const noexcept
    {
        std::size_t count = 0;
        const Missing *missing = sapwood_answer_missing(handle_.get(), &count);
        return Span<const Missing>(missing, count);
    }

private:
    friend class Stream;
    friend class Question;
    using Handle = detail::Handle<sapwood_answer_t, detail::free_of<sapwood_answer_t, sapwood_answer_free>>;

    explicit Answer(Handle &&handle) noexcept : handle_(std::move(handle)) {}
    Handle handle_;
};

}  // namespace sapwood

#endif  // SAPWOOD_ANSWER_HPP
