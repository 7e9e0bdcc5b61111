// filters BACK_END LIBRARY FAULTS: filters and rules of one's own where they lie and shipped, and those of FAULTS
// that have no end.
#include "check.hpp"

static const std::chrono::milliseconds limit{300};

static void sums_by(sapwood::Network &network, const std::string &filter)
{
    sapwood::StreamOptions options;
    options.up = filter;
    sapwood::Stream stream = network.open_stream(options);
    stream.broadcast(RANK, 10);
    const sapwood::Answer answer = stream.recv(hang);
    CHECK(answer.read<std::int32_t>() == 46 && answer.is_complete());
}

static void lets_go_by(sapwood::Network &network, const std::string &rule)
{
    sapwood::StreamOptions options;
    options.up = "sum";
    options.rule = rule;
    options.rule_text = "3";
    sapwood::Stream stream = network.open_stream(options);
    const sapwood::Answer answer = stream.ask(hang, SILENT, 3u);
    CHECK(answer.read<std::uint32_t>() == 3 && answer.missing().size() == 1);
    CHECK(sapwood::cause_of(answer.missing()[0]) == sapwood::Cause::late);
    CHECK(std::string(answer.missing()[0].ranks) == "3");
    CHECK(std::strstr(answer.missing()[0].reason, "when the stream's wave rule forwarded the answer to question 0"));
    options.rule_text.clear();
    THROWS(sapwood::Error, FILTER, "a text of one digit", network.open_stream(options));
}

static void an_endless_filter(sapwood::Network &network, const std::string &filter)
{
    sapwood::StreamOptions options;
    options.up = filter;
    sapwood::Stream stream = network.open_stream(options);
    stream.broadcast(RANK, 10);
    const sapwood::Answer answer = stream.recv(hang);
    THROWS(sapwood::NoValue, NO_VALUE, "has run for 300 ms and is given up", answer.value());
}

static void an_endless_rule(sapwood::Network &network, const std::string &rule)
{
    sapwood::StreamOptions options;
    options.up = "sum";
    options.rule = rule;
    sapwood::Stream stream = network.open_stream(options);
    stream.broadcast(SILENT, 3u);
    const sapwood::Answer answer = stream.recv(hang);
    THROWS(sapwood::NoValue, NO_VALUE, "has run for 300 ms and is given up", answer.value());
}

int main(int argc, char **argv)
{
    return guarded([&] {
        CHECK(argc == 4);
        sapwood::NetworkOptions options;
        options.topology = "1x4";
        options.back_end = {argv[1]};
        options.startup_timeout = hang;
        const std::string library = argv[2], file = "native:" + library;
        const std::string faults = std::string("native:") + argv[3];
        options.filter_limit = limit;
        sapwood::Network strict(options);
        an_endless_filter(strict, faults + "#loop");
        an_endless_rule(strict, faults + "#think");
        sums_by(strict, "sum");
        strict.close();
        options.filter_limit = std::chrono::milliseconds(-1);
        sapwood::Network network(options);
        sums_by(network, file + "#add");
        lets_go_by(network, file + "#quorum");
        THROWS(sapwood::Error, FILTER, "no file of filters", network.ship("nowhere/libnone.so"));
        const std::string shipped = network.ship(library, "add");
        const std::string rule = network.ship(library, "quorum");
        CHECK(std::remove(library.c_str()) == 0);
        sums_by(network, shipped);
        lets_go_by(network, rule);
    });
}
