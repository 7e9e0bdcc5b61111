// misuse BACK_END: what a caller can get wrong is an exception of its own kind, and changes nothing.
#include "check.hpp"

#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using sapwood::Misuse;

static_assert(std::is_nothrow_destructible_v<sapwood::Network> && std::is_nothrow_destructible_v<sapwood::Stream>);
static_assert(std::is_nothrow_destructible_v<sapwood::BackEnd> && std::is_nothrow_destructible_v<sapwood::Packet>);
static_assert(std::is_nothrow_destructible_v<sapwood::Answer> && std::is_nothrow_destructible_v<sapwood::Values>);
static_assert(std::is_nothrow_move_constructible_v<sapwood::Network> && !std::is_copy_constructible_v<sapwood::Network>);
static_assert(std::is_nothrow_move_assignable_v<sapwood::Packet> && !std::is_copy_constructible_v<sapwood::Packet>);
static_assert(std::is_base_of_v<std::runtime_error, sapwood::Error>);

static void networks_that_cannot_be(const std::string &program)
{
    sapwood::NetworkOptions options;
    THROWS(Misuse, USAGE, "give one of", sapwood::Network(options));
    options.topology = "4^";
    options.back_end = {program};
    THROWS(sapwood::Error, TOPOLOGY, "4^", sapwood::Network(options));
    options.topology = "2";
    options.back_end = {"./there-is-no-such-program"};
    THROWS(sapwood::Error, START, "there-is-no-such-program", sapwood::Network(options));
    options.startup_timeout = std::chrono::milliseconds(-1);
    THROWS(Misuse, USAGE, "negative", sapwood::Network(options));
    THROWS(sapwood::Error, START, "SAPWOOD_PARENT is not set", sapwood::BackEnd::attach());
    THROWS(sapwood::Error, FILE, "nowhere", sapwood::BackEnd::attach_by_file("./nowhere"));
}

static void streams_that_cannot_be(sapwood::Network &network, sapwood::Stream &stream)
{
    sapwood::StreamOptions options;
    options.up = "summ";
    THROWS(sapwood::Error, FILTER, "'summ'", network.open_stream(options));
    THROWS(Misuse, USAGE, "17", network.open_stream(sapwood::Communicator{17}));
    THROWS(Misuse, USAGE, "'5-x'", sapwood::Communicator::parse("5-x"));
    THROWS(Misuse, USAGE, "17", (stream.send_to(17, RANK, 1), 0));
    THROWS(Misuse, USAGE, "tag 99 is the network's own", (stream.broadcast(99, 1), 0));
    THROWS(Misuse, USAGE, "tag -1 is the network's own", (stream.send_to(0, -1, 1), 0));
    THROWS(Misuse, USAGE, "NUL", (stream.broadcast(RANK, std::string("a\0b", 3)), 0));
    const char *nothing = nullptr;
    THROWS(Misuse, USAGE, "NULL", (stream.broadcast(RANK, nothing), 0));
    THROWS(sapwood::Timeout, TIMEOUT, "within 1 ms", stream.recv(std::chrono::milliseconds(1)));
    THROWS(Misuse, USAGE, "negative", stream.recv(std::chrono::milliseconds(-1)));
}

// A stream that is closed, and one that was moved away, are empty.
static void after_the_end(sapwood::Network &network)
{
    sapwood::Stream closed = network.open_stream();
    closed.close();
    THROWS(Misuse, USAGE, "NULL", (closed.broadcast(RANK, 1), 0));
    THROWS(Misuse, USAGE, "NULL", closed.recv());
    CHECK(closed.id() == 0 && closed.dropped() == 0);
    sapwood::Stream first = network.open_stream();
    const std::uint32_t id = first.id();
    sapwood::Stream second = std::move(first);
    CHECK(second.id() == id);
    THROWS(Misuse, USAGE, "NULL", first.try_recv());  // NOLINT: it is what is tested
    first = std::move(second);
    CHECK(first.id() == id);
    sapwood::Communicator members = network.everyone();
    const sapwood::Communicator taken = std::move(members);
    THROWS(Misuse, USAGE, "moved", network.open_stream(members));  // NOLINT
    CHECK(taken.size() == 2 && members.size() == 0);
}

static void on_another_thread(sapwood::Network &network, sapwood::Stream &stream)
{
    std::thread([&] {
        THROWS(sapwood::Error, THREAD, "another thread", (stream.broadcast(RANK, 1), 0));
        THROWS(sapwood::Error, THREAD, "another thread", stream.recv(hang));
        THROWS(sapwood::Error, THREAD, "another thread", (network.flush(), 0));
        THROWS(sapwood::Error, THREAD, "another thread", (stream.close(), 0));
        CHECK(network.size() == 0 && network.descriptor() == -1);
    }).join();
}

// The destructors of the child's copies close nothing of the parent's.
static void in_a_forked_child(sapwood::Network &network, sapwood::Stream &stream)
{
    const pid_t child = fork();
    if (child == 0) {
        THROWS(sapwood::Error, FORKED, "forked", (stream.broadcast(RANK, 1), 0));
        THROWS(sapwood::Error, FORKED, "forked", stream.try_recv());
        sapwood::Stream moved = std::move(stream);
        THROWS(sapwood::Error, FORKED, "forked", (moved.close(), 0));
        { sapwood::Network gone = std::move(network); }
        _exit(0);
    }
    int status = 1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static void all_is_well(sapwood::Network &network, sapwood::Stream &stream)
{
    stream.broadcast(RANK, 10);
    const sapwood::Answer answer = stream.recv(hang);
    CHECK(answer.read<std::int32_t>() == 21 && answer.is_complete() && network.size() == 2);
    THROWS(sapwood::FormatError, FORMAT, "holds '%d', not '%lf'", answer.read<double>());
}

int main(int argc, char **argv)
{
    return guarded([&] {
        CHECK(argc == 2);
        networks_that_cannot_be(argv[1]);
        sapwood::NetworkOptions options;
        options.topology = "2";
        options.back_end = {argv[1]};
        options.startup_timeout = hang;
        sapwood::Network network(options);
        sapwood::StreamOptions sum;
        sum.up = "sum";
        sapwood::Stream stream = network.open_stream(sum);
        streams_that_cannot_be(network, stream);
        after_the_end(network);
        on_another_thread(network, stream);
        in_a_forked_child(network, stream);
        all_is_well(network, stream);
        network.close();
        // A stream may outlive its network; its answers say that nothing comes any more.
        bool is_refused = false;
        try {
            stream.recv(hang);
        } catch (const sapwood::Error &) {
            is_refused = true;
        }
        CHECK(is_refused);
        THROWS(Misuse, USAGE, "NULL", (network.flush(), 0));
    });
}
