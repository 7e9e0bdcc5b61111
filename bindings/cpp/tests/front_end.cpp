// front_end TOPOLOGY BACK_END [ARGUMENT...]: values of every type both ways, reductions, single members, events.
#include "check.hpp"

#include <poll.h>

static void numbers_both_ways(sapwood::Network &network)
{
    sapwood::StreamOptions options;
    options.wave = SAPWOOD_WAVE_IMMEDIATE;
    sapwood::Stream stream = network.open_stream(options);
    const Numbers n(7);
    stream.broadcast(NUMBERS, n.i8, n.u8, n.i16, n.u16, n.i32, n.u32, n.i64, n.u64, n.f, n.d);
    std::uint64_t seen = 0;
    for (std::uint64_t i = 0; i < network.size(); i++) {
        const sapwood::Answer answer = stream.recv(hang);
        CHECK(answer.contributors().size() == 1 && answer.stream() == stream.id());
        check_numbers(answer.value(), answer.contributors()[0].first);
        CHECK(answer.value().origin() == answer.contributors()[0].first);
        seen += answer.value().origin();
    }
    CHECK(seen == network.size() * (network.size() - 1) / 2);
    CHECK(!stream.try_recv());
}

static void arrays_and_texts_both_ways(sapwood::Network &network)
{
    sapwood::StreamOptions options;
    options.wave = SAPWOOD_WAVE_IMMEDIATE;
    sapwood::Stream stream = network.open_stream(options);
    const std::uint8_t bytes[] = {1, 2, 7};
    stream.broadcast(ARRAYS, doubles_of(7), sapwood::large(doubles_of(7)), bytes);
    for (std::uint64_t i = 0; i < network.size(); i++) {
        const sapwood::Answer answer = stream.recv(hang);
        CHECK(answer.value().format() == "%alf %Alf %auc");
        check_arrays(answer.value(), answer.value().origin());
    }
    const std::vector<std::string> list{"down", "", "three"};
    const char *const pointers[] = {"a", "b"};
    stream.broadcast(TEXTS, std::string("down"), std::string_view("viewpoint", 4), "literal", list, pointers);
    for (std::uint64_t i = 0; i < network.size(); i++) {
        const sapwood::Answer answer = stream.recv(hang);
        check_texts(answer.value(), std::string(answer.value().origin() % 20, 'x'));
    }
    stream.close();
    stream.close();
}

static void a_sum_over_everyone(sapwood::Network &network)
{
    sapwood::StreamOptions options;
    options.up = "sum";
    sapwood::Stream stream = network.open_stream(network.everyone(), options);
    const auto size = static_cast<std::int32_t>(network.size());
    for (std::int32_t wave = 0; wave < 3; wave++) {
        stream.broadcast(RANK, wave);
        const sapwood::Answer answer = stream.recv();
        CHECK(answer.read<std::int32_t>() == size * (size - 1) / 2 + wave * size);
        CHECK(answer.wave() == static_cast<std::uint64_t>(wave) && answer.is_complete());
        CHECK(!answer.is_late() && answer.missing().empty());
        CHECK(answer.contributor_count() == network.size());
    }
    CHECK(stream.dropped() == 0);
}

static void one_member(sapwood::Network &network)
{
    const auto last = static_cast<std::uint32_t>(network.size() - 1);
    const sapwood::Communicator member{last};
    CHECK(member.size() == 1 && member.ranges()[0].last == last);
    CHECK(sapwood::Communicator::parse(std::to_string(last)).size() == 1);
    sapwood::Stream stream = network.open_stream(member);
    stream.send_to(last, RANK, 1000);
    network.flush();
    std::optional<sapwood::Answer> answer;
    pollfd descriptor{network.descriptor(), POLLIN, 0};
    while (!(answer = stream.try_recv()))
        CHECK(poll(&descriptor, 1, static_cast<int>(hang.count())) == 1);
    CHECK(answer->read<std::int32_t>() == 1000 + static_cast<std::int32_t>(last));
    sapwood::Values values;
    values.add(2000);
    stream.send_to(last, RANK, values);
    const sapwood::Answer again = stream.recv(hang);
    CHECK(again.read<std::int32_t>() == 2000 + static_cast<std::int32_t>(last));
    // The answer to the packet behind it is the next one, so nothing arrived.
    const std::vector<std::uint32_t> none;
    stream.send_to(sapwood::Communicator(none), RANK, 3000);
    stream.send_to(member, RANK, 4000);
    const sapwood::Answer some = stream.recv(hang);
    CHECK(some.read<std::int32_t>() == 4000 + static_cast<std::int32_t>(last));
    stream.send_to(sapwood::Recipients::all(), RANK, 5000);
    const sapwood::Answer all = stream.recv(hang);
    CHECK(all.read<std::int32_t>() == 5000 + static_cast<std::int32_t>(last));
}

static void waves_that_are_left_out(sapwood::Network &network)
{
    sapwood::Stream stream = network.open_stream();
    stream.broadcast(WAVE);
    for (;;) {
        const sapwood::Answer answer = stream.recv(hang);
        try {
            CHECK(answer.read<std::int32_t>() == 1 && answer.wave() == 5);
            return;
        } catch (const sapwood::NoValue &error) {
            CHECK(error.code() == SAPWOOD_ERROR_NO_VALUE);
        }
    }
}

int main(int argc, char **argv)
{
    return guarded([&] {
        CHECK(argc >= 3);
        sapwood::NetworkOptions options;
        options.topology = argv[1];
        options.back_end.assign(argv + 2, argv + argc);
        options.back_end_environment["SAPWOOD_TEST_NAME"] = "value";
        options.startup_timeout = hang;
        sapwood::Network network(options);
        CHECK(network.size() >= 1 && network.everyone().size() == network.size());
        bool is_ready = false;
        while (auto event = network.next_event())
            is_ready |= event->kind == SAPWOOD_EVENT_READY;
        CHECK(is_ready);
        numbers_both_ways(network);
        arrays_and_texts_both_ways(network);
        a_sum_over_everyone(network);
        one_member(network);
        waves_that_are_left_out(network);
        network.turn(std::chrono::milliseconds(0));
        std::printf("%s: %u back-ends\n", argv[1], static_cast<unsigned>(network.size()));
        network.close();
        network.close();
    });
}
