// sketches PROGRAM [back-end]: asks a tree of 2x2 for every sketch, and each for what it knows, compared with
// data that is known. The back-ends are the program itself.
#include "check.hpp"

#include <cmath>

static sapwood::Sketch asked(sapwood::Network &network, const char *filter, const char *data)
{
    sapwood::StreamOptions options;
    options.up = filter;
    sapwood::Stream stream = network.open_stream(options);
    stream.broadcast(sapwood::first_tag, data);
    const sapwood::Answer answer = stream.recv(hang);
    CHECK(answer.is_complete());
    // It outlives the answer.
    return sapwood::Sketch(answer);
}

static void numbers(sapwood::Network &network)
{
    const sapwood::Sketch quantiles = asked(network, "quantiles", "numbers");
    CHECK(quantiles.kind() == SAPWOOD_SKETCH_QUANTILES && quantiles.count() == 1000);
    CHECK(std::abs(quantiles.quantile(0.99) - 990) <= 990 * quantiles.relative_error());
    CHECK(quantiles.range() == std::make_pair(1.0, 1000.0) && quantiles.left_out() == 0);
    THROWS(sapwood::Misuse, USAGE, "ask one of kll", quantiles.rank(3));
    const sapwood::Sketch kll = asked(network, "kll", "numbers");
    CHECK(std::abs(kll.quantile(0.5) - 500) <= kll.rank_error(1e-9) + 1 && kll.rank(1000) == 1000);
    const sapwood::Sketch histogram = asked(network, "histogram(0 1000 10)", "numbers");
    CHECK(histogram.bins().size() == 10 && histogram.bins()[9].count == 100);
    CHECK(histogram.outside() == std::make_pair(std::uint64_t(0), std::uint64_t(1)));
    const sapwood::Sketch none = asked(network, "quantiles", "nothing");
    THROWS(sapwood::NoValue, NO_VALUE, "no numbers", none.quantile(0.5));
}

static void items(sapwood::Network &network)
{
    const sapwood::Sketch distinct = asked(network, "distinct", "lines");
    CHECK(distinct.distinct() == 5 && distinct.standard_error() == 0);
    THROWS(sapwood::Misuse, USAGE, "has no entries", distinct.entries());
    const sapwood::Sketch hitters = asked(network, "heavy-hitters", "lines");
    const sapwood::SketchEntry &first = hitters.entries()[0];
    CHECK(hitters.entries().size() == 5 && sapwood::text_of(first) == "disk full" && first.at_least == 8);
    const sapwood::Sketch set = asked(network, "union(2)", "lines");
    CHECK(set.entries().size() == 2 && !set.is_complete() && sapwood::text_of(set.entries()[1]) == "line 0");
    const sapwood::Sketch top = asked(network, "top", "load");
    CHECK(top.entries().size() == 2 && top.entries()[0].number == 10);
    CHECK(sapwood::ranks_of(top.entries()[0]).size() == 2 && sapwood::ranks_of(top.entries()[0])[0].first == 1);
    const sapwood::Sketch tree = asked(network, "prefix-tree", "stack");
    CHECK(tree.text() == "main: 0-3\n  send: 1,3\n  wait: 0,2\n" && top.text().empty());
    CHECK(tree.nodes().size() == 3 && sapwood::text_of(tree.nodes()[1]) == "send" && tree.nodes()[1].ending == 2);
}

static void refused(sapwood::Network &network)
{
    sapwood::Stream stream = network.open_stream(sapwood::StreamOptions());
    stream.broadcast(sapwood::first_tag, "load");
    const sapwood::Answer answer = stream.recv(hang);
    THROWS(sapwood::FormatError, FORMAT, "which is no sketch", sapwood::Sketch(answer));
    sapwood::Sketch one = asked(network, "top", "load");
    const sapwood::Sketch two = std::move(one);
    CHECK(two.count() == 4 && one.kind() == SAPWOOD_SKETCH_NONE);
    THROWS(sapwood::Misuse, USAGE, "NULL", one.entries());
}

static void reply(sapwood::BackEnd &back_end, const sapwood::Packet &packet)
{
    const std::uint32_t rank = back_end.rank();
    const std::string data = packet.read<std::string>();
    if (data == "numbers") {
        std::vector<double> numbers;
        for (std::uint32_t number = rank * 250; number < rank * 250 + 250; number++)
            numbers.push_back(number + 1);
        back_end.reply(packet, numbers);
    } else if (data == "nothing") {
        back_end.reply(packet, std::vector<double>());
    } else if (data == "lines") {
        back_end.reply(packet, std::vector<std::string>{"disk full", "line " + std::to_string(rank), "disk full"});
    } else if (data == "load") {
        back_end.reply(packet, static_cast<std::int32_t>(rank % 2 * 10));
    } else {
        back_end.reply(packet, std::vector<std::string>{"main", rank % 2 == 0 ? "wait" : "send"});
    }
}

int main(int argc, char **argv)
{
    return guarded([&] {
        CHECK(argc == 2 || argc == 3);
        if (argc == 3) {
            sapwood::BackEnd back_end = sapwood::BackEnd::attach();
            try {
                for (;;)
                    reply(back_end, back_end.recv());
            } catch (const sapwood::Ended &) {
                return;
            }
        }
        sapwood::NetworkOptions options;
        options.topology = "2x2";
        options.back_end = {argv[1], argv[1], "back-end"};
        options.startup_timeout = hang;
        sapwood::Network network(options);
        numbers(network);
        items(network);
        refused(network);
        network.close();
    });
}
