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
        CHECK(answer.question() == static_cast<std::uint64_t>(wave) && answer.is_complete());
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

static void each_question_has_its_own_answer(sapwood::Network &network)
{
    sapwood::StreamOptions options;
    options.up = "sum";
    sapwood::Stream stream = network.open_stream(options);
    const auto size = static_cast<std::int32_t>(network.size());
    const std::chrono::milliseconds soon(50);
    const std::int32_t nap_ms = 2000;
    THROWS(sapwood::Timeout, TIMEOUT, "no answer within 50 ms", stream.ask(soon, ASKED, nap_ms, 1));
    for (std::int32_t number = 42; number <= 44; number++) {
        const sapwood::Answer answer = stream.ask(hang, ASKED, 0, number);
        CHECK(answer.read<std::int32_t>() == number * size);
        CHECK(answer.question() == static_cast<std::uint64_t>(number - 41));
    }
    CHECK(stream.discarded() == 1 && !stream.try_recv());
    const sapwood::Answer among = stream.ask(UNASKED);
    CHECK(among.read<std::int32_t>() == size);
    for (std::int32_t number = -1; number >= -2; number--) {
        const sapwood::Answer unasked = stream.recv(hang);
        CHECK(!unasked.question() && unasked.read<std::int32_t>() == number * size);
    }
    sapwood::Question slow = stream.ask_async(ASKED, nap_ms, 7);
    sapwood::Question next = stream.ask_async(ASKED, 0, 8);
    CHECK(!slow.try_wait());
    THROWS(sapwood::Timeout, TIMEOUT, "no answer", slow.wait(soon));
    const sapwood::Answer second = next.wait();
    const sapwood::Answer first = slow.wait(hang);
    CHECK(first.read<std::int32_t>() == 7 * size && second.read<std::int32_t>() == 8 * size);
    CHECK(first.question() == slow.number() && second.question() == next.number());
    options.up.clear();
    options.wave = SAPWOOD_WAVE_IMMEDIATE;
    sapwood::Stream at_once = network.open_stream(options);
    THROWS(sapwood::Misuse, USAGE, "does not wait for its members", at_once.ask(ASKED, 0, 1));
}

static void the_cause_of_one_that_is_gone(sapwood::Network &network)
{
    if (network.size() == 1)
        return;
    sapwood::StreamOptions options;
    options.up = "sum";
    sapwood::Stream stream = network.open_stream(options);
    stream.try_broadcast(END, std::uint32_t(0));
    const sapwood::Answer answer = stream.recv(hang);
    CHECK(answer.missing().size() == 1);
    CHECK(sapwood::cause_of(answer.missing()[0]) == sapwood::Cause::exited);
    CHECK(answer.missing()[0].cause_detail == 3);
    std::optional<sapwood::Event> event;
    do
        event = network.next_event();
    while (event && event->kind != SAPWOOD_EVENT_LOST);
    CHECK(event && event->cause == sapwood::Cause::exited && event->cause_detail == 3);
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
        each_question_has_its_own_answer(network);
        const auto size = static_cast<unsigned>(network.size());
        the_cause_of_one_that_is_gone(network);
        network.turn(std::chrono::milliseconds(0));
        std::printf("%s: %u back-ends\n", argv[1], size);
        network.close();
        network.close();
    });
}
