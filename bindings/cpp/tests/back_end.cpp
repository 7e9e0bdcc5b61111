// The back-end of the test programs: answers each packet as its tag says, until the network ends.
#include "check.hpp"

#include <chrono>
#include <cstdlib>
#include <thread>

static void answer_arrays(sapwood::BackEnd &back_end, const sapwood::Packet &packet)
{
    const std::uint32_t rank = back_end.rank();
    const std::uint8_t bytes[] = {1, 2, static_cast<std::uint8_t>(rank)};
    const std::vector<double> doubles = doubles_of(rank);
    check_arrays(packet, 7);
    back_end.reply(packet, doubles, sapwood::large(doubles), sapwood::Span<const std::uint8_t>(bytes, 3));
}

static void answer_texts(sapwood::BackEnd &back_end, const sapwood::Packet &packet)
{
    const std::string first(back_end.rank() % 20, 'x');
    check_texts(packet, "down");
    sapwood::Values values;
    values.add(first).add(std::string_view("view and more", 4)).add("literal");
    values.add(std::vector<std::string>{first, "", "three"}).add(std::array<const char *, 2>{"a", "b"});
    back_end.reply(packet, values);
}

static void answer(sapwood::BackEnd &back_end, const sapwood::Packet &packet)
{
    switch (packet.tag()) {
    case NUMBERS: {
        const Numbers n(back_end.rank());
        check_numbers(packet, 7);
        back_end.reply(packet, n.i8, n.u8, n.i16, n.u16, n.i32, n.u32, n.i64, n.u64, n.f, n.d);
        break;
    }
    case ARRAYS: answer_arrays(back_end, packet); break;
    case TEXTS: answer_texts(back_end, packet); break;
    case RANK:
        back_end.reply(packet, packet.read<std::int32_t>() + static_cast<std::int32_t>(back_end.rank()));
        back_end.flush();
        break;
    case WAVE:
        back_end.send_in_wave(packet.stream(), 5, WAVE, 1);
        THROWS(sapwood::Misuse, USAGE, "wave 2 has passed",
               (back_end.send_in_wave(packet.stream(), 2, WAVE, 1), 0));
        THROWS(sapwood::FormatError, FORMAT, "not '%lf'", packet.read<double>());
        THROWS(sapwood::Misuse, USAGE, "tag 0 is the network's own", (back_end.send(packet.stream(), 0, 1), 0));
        THROWS(sapwood::Misuse, USAGE, "is not open", (back_end.send(packet.stream() + 99, WAVE, 1), 0));
        break;
    case SILENT:
        if (packet.read<std::uint32_t>() != back_end.rank())
            back_end.reply(packet, back_end.rank());
        break;
    case ASKED: {
        const auto [nap_ms, number] = packet.read<std::int32_t, std::int32_t>();
        if (back_end.rank() == 0)
            std::this_thread::sleep_for(std::chrono::milliseconds(nap_ms));
        CHECK(back_end.reply(packet, number));
        THROWS(sapwood::Misuse, USAGE, "has passed", back_end.reply(packet, number));
        break;
    }
    case UNASKED:
        back_end.send(packet.stream(), UNASKED, -1);
        CHECK(back_end.try_reply(packet, 1));
        back_end.try_send(packet.stream(), UNASKED, -2);
        break;
    case END:
        if (packet.read<std::uint32_t>() == back_end.rank())
            std::_Exit(3);
        back_end.reply(packet, 1);
        break;
    default: fail(__FILE__, __LINE__, "tag", "is unknown");
    }
}

int main(int argc, char **argv)
{
    return guarded([&] {
        sapwood::BackEnd back_end = argc == 2 ? sapwood::BackEnd::attach_by_file(argv[1])
                                              : sapwood::BackEnd::attach();
        CHECK(back_end.descriptor() >= 0 && !back_end.has_ended());
        try {
            for (;;)
                answer(back_end, back_end.recv());
        } catch (const sapwood::Ended &) {
            CHECK(back_end.has_ended());
        }
        back_end.close();
        back_end.close();
        THROWS(sapwood::Misuse, USAGE, "NULL", back_end.recv());
    });
}
