// sapwood/values.hpp: errors, and how C++ values become C's format strings and pointers, and back.
//
// A part of sapwood.hpp, which includes it; programs include that. `detail` is not part of the
// interface.
#ifndef SAPWOOD_VALUES_HPP
#define SAPWOOD_VALUES_HPP

#include <sapwood.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#if __cplusplus >= 202002L
#include <span>
#endif

namespace sapwood {

#if __cplusplus >= 202002L
// Contiguous elements in memory that another object owns.
template <class T>
using Span = std::span<T>;
#else
// Contiguous elements in memory that another object owns: as much of C++20's std::span as this
// header needs.
template <class T>
class Span {
public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;

    constexpr Span() noexcept = default;
    constexpr Span(T *first, std::size_t count) noexcept : first_(first), count_(count) {}
    template <class Container, class = decltype(std::declval<Container &>().data())>
    constexpr Span(Container &container) noexcept : first_(container.data()), count_(container.size()) {}
    constexpr T *data() const noexcept { return first_; }
    constexpr std::size_t size() const noexcept { return count_; }
    constexpr bool empty() const noexcept { return count_ == 0; }
    constexpr T &operator[](std::size_t index) const noexcept { return first_[index]; }
    constexpr T *begin() const noexcept { return first_; }
    constexpr T *end() const noexcept { return first_ + count_; }

private:
    T *first_ = nullptr;
    std::size_t count_ = 0;
};
#endif

// What a call failed with.
class Error : public std::runtime_error {
public:
    Error(int code, const char *text) : std::runtime_error(text), code_(code) {}
    // A sapwood_error_code_t.
    int code() const noexcept { return code_; }
    // The code in one word, such as "timeout".
    const char *name() const noexcept { return sapwood_error_name(code_); }

private:
    int code_;
};

// The deadline passed.
struct Timeout : Error {
    using Error::Error;
};
// The network has ended for this process, as it does for every back-end in time.
struct Ended : Error {
    using Error::Error;
};
// All back-ends of a stream are lost.
struct NoMemberLeft : Error {
    using Error::Error;
};
// An answer has no value; the text names the missing back-ends with reasons.
struct NoValue : Error {
    using Error::Error;
};
// Nothing was sent, since the stream's window is full.
struct WouldWait : Error {
    using Error::Error;
};
// The call makes no sense.
struct Misuse : Error {
    using Error::Error;
};
// A format is malformed, or differs from what a packet holds.
struct FormatError : Error {
    using Error::Error;
};

namespace detail {

[[noreturn]] inline void raise(int code, const char *text)
{
    switch (code) {
    case SAPWOOD_ERROR_TIMEOUT: throw Timeout(code, text);
    case SAPWOOD_ERROR_ENDED: throw Ended(code, text);
    case SAPWOOD_ERROR_NO_MEMBER_LEFT: throw NoMemberLeft(code, text);
    case SAPWOOD_ERROR_NO_VALUE: throw NoValue(code, text);
    case SAPWOOD_ERROR_USAGE: throw Misuse(code, text);
    case SAPWOOD_ERROR_FORMAT: throw FormatError(code, text);
    case SAPWOOD_ERROR_WOULD_WAIT: throw WouldWait(code, text);
    default: throw Error(code, text);
    }
}

// Calls a function of the header whose last argument but for others is the error.
template <class Call>
void check(Call &&call)
{
    sapwood_error_t error;
    if (int code = call(&error))
        raise(code, error.text);
}

// How long a call may wait, for C: -1 for ever.
inline std::int32_t milliseconds(std::chrono::milliseconds time)
{
    if (time.count() < 0)
        raise(SAPWOOD_ERROR_USAGE, "a time to wait is negative; leave it out to wait for ever");
    const auto most = std::numeric_limits<std::int32_t>::max();
    return time.count() > most ? most : static_cast<std::int32_t>(time.count());
}

constexpr std::int32_t for_ever = -1;

// A handle that is given back when its holder goes.
template <class T, int (*Close)(T **, sapwood_error_t *)>
class Handle {
public:
    Handle() noexcept = default;
    Handle(Handle &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    Handle &operator=(Handle &&other) noexcept
    {
        if (this != &other) {
            Close(&raw_, nullptr);
            raw_ = std::exchange(other.raw_, nullptr);
        }
        return *this;
    }
    ~Handle() { Close(&raw_, nullptr); }
    T *get() const noexcept { return raw_; }
    T **out() noexcept { return &raw_; }
    void close()
    {
        check([&](sapwood_error_t *error) { return Close(&raw_, error); });
    }

private:
    T *raw_ = nullptr;
};

template <class T, void (*Free)(T **)>
int free_of(T **raw, sapwood_error_t *)
{
    Free(raw);
    return SAPWOOD_OK;
}

template <class T>
inline constexpr bool is_number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool> &&
                                  !std::is_same_v<T, long double> && !std::is_same_v<T, wchar_t>;

// What a number is in a format string, without the '%'.
template <class T>
constexpr const char *number_code()
{
    static_assert(is_number<T>, "values are whole numbers of 8 to 64 bits, float and double");
    if constexpr (std::is_same_v<T, float>) {
        return "f";
    } else if constexpr (std::is_same_v<T, double>) {
        return "lf";
    } else if constexpr (std::is_same_v<T, char>) {
        return "c";
    } else {
        constexpr const char *codes[2][4] = {{"uc", "uhd", "ud", "uld"}, {"c", "hd", "d", "ld"}};
        constexpr std::size_t at = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
        return codes[std::is_signed_v<T>][at];
    }
}

template <class T>
inline constexpr bool is_text = std::is_convertible_v<const T &, std::string_view>;

template <class T, class = void>
struct ElementOf {};
template <class T>
struct ElementOf<T, std::void_t<decltype(std::declval<const T &>().data()),
                                decltype(std::declval<const T &>().size())>> {
    using type = std::remove_cv_t<std::remove_pointer_t<decltype(std::declval<const T &>().data())>>;
};
template <class T, std::size_t N>
struct ElementOf<T[N], void> {
    using type = std::remove_cv_t<T>;
};

// Elements whose number is sent in 64 bits.
template <class T>
struct Large {
    const T &elements;
};
template <class T>
struct IsLarge : std::false_type {};
template <class T>
struct IsLarge<Large<T>> : std::true_type {};

// The format string and the pointers of values, as the functions ending in "_values" take them.
// Numbers and arrays are read where they lie, so they have to be there until the call is over.
class Arguments {
public:
    template <class... T>
    explicit Arguments(const T &...values)
    {
        (add(values), ...);
    }
    const char *format() const noexcept { return format_.c_str(); }
    const void *const *pointers() const noexcept { return pointers_.data(); }
    std::size_t count() const noexcept { return pointers_.size(); }

    template <class T>
    void add(const T &value)
    {
        if constexpr (IsLarge<T>::value) {
            add_elements(value.elements, 'A');
        } else if constexpr (is_text<T>) {
            if constexpr (std::is_pointer_v<T>) {
                if (value == nullptr)
                    raise(SAPWOOD_ERROR_USAGE, "a text is NULL");
            }
            name("", "s");
            pointers_.push_back(text(std::string_view(value)));
        } else if constexpr (std::is_enum_v<T>) {
            name("", number_code<std::underlying_type_t<T>>());
            pointers_.push_back(&value);
        } else if constexpr (std::is_arithmetic_v<T>) {
            name("", number_code<T>());
            pointers_.push_back(&value);
        } else {
            add_elements(value, 'a');
        }
    }

private:
    void name(const char *shape, const char *code)
    {
        format_ += format_.empty() ? "%" : " %";
        format_ += shape;
        format_ += code;
    }

    const char *text(std::string_view value)
    {
        if (value.find('\0') != value.npos)
            raise(SAPWOOD_ERROR_USAGE, "a text holds a NUL; send it as an array of char");
        return texts_.emplace_back(value).c_str();
    }

    template <class T>
    void add_elements(const T &elements, char shape)
    {
        using Element = typename ElementOf<T>::type;
        const char prefix[2] = {shape, 0};
        const std::size_t count = std::size(elements);
        if constexpr (is_text<Element>) {
            name(prefix, "s");
            std::vector<const char *> &list = lists_.emplace_back();
            for (const auto &element : elements)
                list.push_back(text(std::string_view(element)));
            pointers_.push_back(list.data());
        } else {
            name(prefix, number_code<Element>());
            pointers_.push_back(std::data(elements));
        }
        if (shape == 'A') {
            pointers_.push_back(&large_counts_.emplace_back(count));
            return;
        }
        if (count > std::numeric_limits<std::uint32_t>::max())
            raise(SAPWOOD_ERROR_USAGE, "an array has more than 4294967295 elements; send it as large(...)");
        pointers_.push_back(&counts_.emplace_back(static_cast<std::uint32_t>(count)));
    }

    std::string format_;
    std::vector<const void *> pointers_;
    // What is pointed to; a deque never moves what it holds.
    std::deque<std::string> texts_;
    std::deque<std::vector<const char *>> lists_;
    std::deque<std::uint32_t> counts_;
    std::deque<std::uint64_t> large_counts_;
};

// How a value of one type is read: its directive, the places that C writes to, and what becomes of it.
template <class T, class = void>
struct Reader;

template <class T>
struct Reader<T, std::enable_if_t<is_number<T>>> {
    T number{};
    static std::string directive() { return std::string("%") + number_code<T>(); }
    void places(std::vector<void *> &places) { places.push_back(&number); }
    T value(const sapwood_packet_t *, std::size_t) { return number; }
};

// Texts are read with their length, since a NUL may be among their bytes.
template <class T>
struct TextReader {
    static std::string directive() { return "%s"; }
    void places(std::vector<void *> &places) { places.push_back(nullptr); }
    T value(const sapwood_packet_t *packet, std::size_t index)
    {
        const char *bytes = nullptr;
        std::size_t length = 0;
        check([&](sapwood_error_t *error) {
            return sapwood_packet_bytes(packet, index, &bytes, &length, error);
        });
        return T(bytes, length);
    }
};
template <>
struct Reader<std::string> : TextReader<std::string> {};
template <>
struct Reader<std::string_view> : TextReader<std::string_view> {};

template <>
struct Reader<const char *> {
    const char *text = nullptr;
    static std::string directive() { return "%s"; }
    void places(std::vector<void *> &places) { places.push_back(&text); }
    const char *value(const sapwood_packet_t *, std::size_t) { return text; }
};

template <class Element>
struct ElementsReader {
    const Element *first = nullptr;
    std::uint64_t count = 0;
    void places(std::vector<void *> &places)
    {
        places.push_back(const_cast<void *>(static_cast<const void *>(&first)));
        places.push_back(&count);
    }
};

template <class T>
struct Reader<Span<const T>, std::enable_if_t<is_number<T>>> : ElementsReader<T> {
    static std::string directive() { return std::string("%A") + number_code<T>(); }
    Span<const T> value(const sapwood_packet_t *, std::size_t)
    {
        return Span<const T>(this->first, static_cast<std::size_t>(this->count));
    }
};

template <class T>
struct Reader<std::vector<T>, std::enable_if_t<is_number<T>>> : ElementsReader<T> {
    static std::string directive() { return std::string("%A") + number_code<T>(); }
    std::vector<T> value(const sapwood_packet_t *, std::size_t)
    {
        return std::vector<T>(this->first, this->first + this->count);
    }
};

template <>
struct Reader<Span<const char *const>> : ElementsReader<const char *> {
    static std::string directive() { return "%As"; }
    Span<const char *const> value(const sapwood_packet_t *, std::size_t)
    {
        return Span<const char *const>(first, static_cast<std::size_t>(count));
    }
};

template <>
struct Reader<std::vector<std::string>> : ElementsReader<const char *> {
    static std::string directive() { return "%As"; }
    std::vector<std::string> value(const sapwood_packet_t *, std::size_t)
    {
        return std::vector<std::string>(first, first + count);
    }
};

// Gives a value, or all of them as a tuple.
template <class... T, std::size_t... Index>
auto read(const sapwood_packet_t *packet, std::index_sequence<Index...>)
{
    std::tuple<Reader<T>...> readers;
    std::string format;
    std::vector<void *> places;
    ((format += Reader<T>::directive(), std::get<Index>(readers).places(places)), ...);
    check([&](sapwood_error_t *error) {
        return sapwood_packet_read_values(packet, format.c_str(), places.data(), places.size(), error);
    });
    if constexpr (sizeof...(T) == 1)
        return std::get<0>(readers).value(packet, 0);
    else
        return std::tuple<T...>(std::get<Index>(readers).value(packet, Index)...);
}

}  // namespace detail

}  // namespace sapwood

#endif  // SAPWOOD_VALUES_HPP
