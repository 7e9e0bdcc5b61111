// What every test program does with a result: go on, or say where and what, and end with code 1.
#ifndef CHECK_HPP
#define CHECK_HPP

#include <sapwood.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// Longer than any wait of these programs; it passes only when something hangs.
inline constexpr std::chrono::milliseconds hang{60000};

enum Tag : std::int32_t { NUMBERS = sapwood::first_tag, ARRAYS, TEXTS, RANK, WAVE, SILENT, ASKED, UNASKED, END };

[[noreturn]] inline void fail(const char *file, int line, const char *what, const char *text)
{
    std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, text);
    std::exit(1);
}

#define CHECK(condition) \
    ((condition) ? (void)0 : fail(__FILE__, __LINE__, "is not so", #condition))

// The expression throws this type, with this code and with these words in its text.
#define THROWS(type, wanted, words, expression) \
    do { \
        bool has_thrown = false; \
        try { \
            (void)(expression); \
        } catch (const type &error) { \
            has_thrown = true; \
            if (error.code() != SAPWOOD_ERROR_##wanted || !std::strstr(error.what(), words)) \
                fail(__FILE__, __LINE__, error.name(), error.what()); \
        } \
        if (!has_thrown) \
            fail(__FILE__, __LINE__, "throws nothing", #expression); \
    } while (0)

// Runs a program's body; what it throws ends it with code 1.
template <class Body>
int guarded(Body &&body)
{
    try {
        body();
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}

// Numbers of every type, which differ from seed to seed.
struct Numbers {
    std::int8_t i8;
    std::uint8_t u8;
    std::int16_t i16;
    std::uint16_t u16;
    std::int32_t i32;
    std::uint32_t u32;
    std::int64_t i64;
    std::uint64_t u64;
    float f;
    double d;

    explicit Numbers(std::uint32_t seed)
        : i8(static_cast<std::int8_t>(-5 - seed % 50)), u8(static_cast<std::uint8_t>(200 + seed % 50)),
          i16(static_cast<std::int16_t>(-30000 + static_cast<int>(seed))),
          u16(static_cast<std::uint16_t>(60000 + seed)), i32(-2000000000 + static_cast<std::int32_t>(seed)),
          u32(4000000000u + seed), i64(-9000000000000000000 + seed), u64(18000000000000000000u + seed),
          f(0.5f + static_cast<float>(seed)), d(-1e300 + 1e290 * seed)
    {
    }
};

// The packet holds the numbers of a seed.
inline void check_numbers(const sapwood::PacketView &packet, std::uint32_t seed)
{
    const Numbers wanted(seed);
    CHECK(packet.format() == "%c %uc %hd %uhd %d %ud %ld %uld %f %lf");
    auto [i8, u8, i16, u16, i32, u32, i64, u64, f, d] =
        packet.read<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
                    std::int64_t, std::uint64_t, float, double>();
    CHECK(i8 == wanted.i8 && u8 == wanted.u8 && i16 == wanted.i16 && u16 == wanted.u16);
    CHECK(i32 == wanted.i32 && u32 == wanted.u32 && i64 == wanted.i64 && u64 == wanted.u64);
    CHECK(f == wanted.f && d == wanted.d);
}

inline std::vector<double> doubles_of(std::uint32_t seed)
{
    std::vector<double> elements;
    for (std::uint32_t i = 0; i < seed % 5; i++)
        elements.push_back(seed + i / 2.0);
    return elements;
}

// The packet holds the arrays of a seed.
inline void check_arrays(const sapwood::PacketView &packet, std::uint32_t seed)
{
    const std::vector<double> wanted = doubles_of(seed);
    auto [doubles, copy, bytes] =
        packet.read<sapwood::Span<const double>, std::vector<double>, sapwood::Span<const std::uint8_t>>();
    CHECK(doubles.size() == wanted.size() && copy == wanted && bytes.size() == 3);
    for (std::size_t i = 0; i < wanted.size(); i++)
        CHECK(doubles[i] == wanted[i]);
    CHECK(reinterpret_cast<std::uintptr_t>(doubles.data()) % sizeof(double) == 0);
    CHECK(bytes[0] == 1 && bytes[1] == 2 && bytes[2] == static_cast<std::uint8_t>(seed));
}

// The packet holds these texts twice.
inline void check_texts(const sapwood::PacketView &packet, const std::string &first)
{
    auto [copy, view, pointer, list, pointers] =
        packet.read<std::string, std::string_view, const char *, std::vector<std::string>,
                    sapwood::Span<const char *const>>();
    CHECK(copy == first && view == "view" && std::strcmp(pointer, "literal") == 0);
    CHECK((list == std::vector<std::string>{first, "", "three"}));
    CHECK(pointers.size() == 2 && std::strcmp(pointers[1], "b") == 0);
}

#endif
