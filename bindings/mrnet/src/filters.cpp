/*
 * Filters by number, those that a tool has loaded among them, and the streams that are made of them.
 */
#include <dlfcn.h>
#include <unistd.h>

#include <sstream>

#include "engine.hpp"
#include "filter_site.hpp"

namespace MRN {

namespace {

/* As FILTERS_MAX of filters/adaptor.cpp. */
const size_t MRNET_FILTERS_MAX = 32;

/* The library that runs filters of MRNet's signature: beside this one, or, where this one is a part of a
   tool, in the folder of libraries beside the tool's; else where filters are looked for. */
std::string adaptor_path()
{
    const std::string name = "libmrnet_filters.so";
    Dl_info here;
    if (dladdr(reinterpret_cast<void*>(&filter_name), &here) == 0 || here.dli_fname == NULL)
        return name;
    std::string holder = here.dli_fname;
    size_t slash = holder.rfind('/');
    std::string folder = slash == std::string::npos ? "." : holder.substr(0, slash);
    for (const char* way : {"/", "/../lib/"})
        if (access((folder + way + name).c_str(), R_OK) == 0)
            return folder + way + name;
    return name;
}

}  // namespace

namespace {

/* Whether a number is one of the filters that decide when a wave is complete, and which. */
bool wave_of(int id, int& wave)
{
    if (id == SFILTER_WAITFORALL)
        wave = SAPWOOD_WAVE_ALL;
    else if (id == SFILTER_DONTWAIT)
        wave = SAPWOOD_WAVE_IMMEDIATE;
    else if (id == SFILTER_TIMEOUT)
        wave = SAPWOOD_WAVE_TIMEOUT;
    else
        return false;
    return true;
}

/* One `id => rank` of a heterogeneous assignment; `rank` may be `*`. */
struct Assignment {
    int id;
    std::string rank;
};

/* An empty text assigns the filter that a stream has where none is named. */
bool read_assignments(const std::string& text, int otherwise, std::vector<Assignment>& assignments)
{
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ';');) {
        if (part.find_first_not_of(" \t\n") == std::string::npos)
            continue;
        std::istringstream words(part);
        Assignment one;
        std::string arrow, more;
        bool is_good = bool(words >> one.id >> arrow >> one.rank) && arrow == "=>" &&
                       !(words >> more) &&
                       (one.rank == "*" ||
                        one.rank.find_first_not_of("0123456789") == std::string::npos);
        if (!is_good)
            return false;
        assignments.push_back(one);
    }
    if (assignments.empty())
        assignments.push_back({otherwise, "*"});
    return true;
}

/* An assignment as it was read. */
std::string written(const std::vector<Assignment>& assignments)
{
    std::string text;
    for (const Assignment& one : assignments)
        text += std::to_string(one.id) + " => " + one.rank + " ; ";
    return text;
}

/* The words of sapwood.h for an assignment, by what gives each number its name; empty if there are
   none. Names of what a tool has loaded begin with a slash. */
template <class NAME_OF>
std::string filters_of(const std::vector<Assignment>& assignments, NAME_OF name_of)
{
    std::string words;
    for (const Assignment& one : assignments) {
        std::string name = name_of(one.id);
        if (name.empty())
            return "";
        if (name.find('/') == 0)
            name = "native:" + adaptor_path() + "#" + name.substr(1);
        if (assignments.size() == 1 && one.rank == "*")
            return name;
        words += name + "@" + one.rank + ";";
    }
    return words;
}

/* The name of a loaded filter as one that synchronises; SFILTER_DONTWAIT beside such passes all on, and
   the others need a stream that waits. */
std::string synchronisation_name(int id, const std::vector<std::string>& loaded)
{
    if (id == SFILTER_DONTWAIT)
        return "null";
    const std::string prefix = "/mrnet";
    std::string name = filter_name(id, loaded);
    return name.find('/') == 0 ? prefix + "-sync" + name.substr(prefix.size()) : "";
}

/* How a stream synchronises: all processes by one filter that is built in, or some by loaded ones. */
bool read_synchronisation(const std::vector<Assignment>& assignments,
                          const std::vector<std::string>& loaded, StreamContents& contents)
{
    bool is_built_in = true;
    for (const Assignment& one : assignments)
        is_built_in = is_built_in && one.id == assignments.front().id && wave_of(one.id, contents.wave);
    if (is_built_in)
        return true;
    contents.wave = SAPWOOD_WAVE_IMMEDIATE;
    contents.sync = filters_of(assignments, [&](int id) { return synchronisation_name(id, loaded); });
    return !contents.sync.empty();
}

}  // namespace

Stream* Network::new_Stream(Communicator* communicator, int up, int sync, int down)
{
    auto everyone = [](int id) { return std::to_string(id) + " => * ;"; };
    return new_Stream(communicator, everyone(up), everyone(sync), everyone(down));
}

Stream* Network::new_Stream(Communicator* communicator, std::string up, std::string sync,
                            std::string down)
{
    std::vector<Assignment> ups, syncs, downs;
    StreamContents contents;
    bool is_good = read_assignments(up, TFILTER_NULL, ups) &&
                   read_assignments(sync, SFILTER_WAITFORALL, syncs) &&
                   read_assignments(down, TFILTER_NULL, downs);
    if (is_good) {
        const std::vector<std::string>& loaded = engine_->loaded_filters;
        auto name_of = [&](int id) { return filter_name(id, loaded); };
        contents.up = filters_of(ups, name_of);
        contents.down = filters_of(downs, name_of);
        is_good = !contents.up.empty() && !contents.down.empty() &&
                  read_synchronisation(syncs, loaded, contents);
    }
    if (!is_good || communicator == NULL || !engine_->is_front_end()) {
        error(ERR_INTERNAL, engine_->rank, "no stream can be made of the filters \"%s\", \"%s\", "
              "\"%s\" here", up.c_str(), sync.c_str(), down.c_str());
        return NULL;
    }
    StreamContents* made = new StreamContents;
    made->up = contents.up;
    made->down = contents.down;
    made->sync = contents.sync;
    made->wave = contents.wave;
    made->assigned_up = written(ups);
    made->assigned_sync = written(syncs);
    made->assigned_down = written(downs);
    for (CommunicationNode* node : communicator->get_EndPoints())
        made->ranks.insert(node->get_Rank());
    for (const std::string& part : {made->up, made->sync, made->down})
        made->has_loaded = made->has_loaded || part.find("native:") != std::string::npos;
    if (made->has_loaded) {
        made->text = engine_->filter_text(made->ranks);
        std::string taker = "native:" + adaptor_path() + "#mrnet-parameters";
        made->down = made->down == "null" ? taker : taker + "," + made->down;
    }
    made->is_lenient = made->up.find("average") != std::string::npos ||
                       made->up.find("concatenate") != std::string::npos;
    Stream* stream = new Stream(*engine_, made);
    bool is_kept = true;
    if (made->wave != SAPWOOD_WAVE_TIMEOUT) {
        Engine::Hold hold(*engine_);
        is_kept = engine_->keep(*stream) == 0;
    }
    if (!is_kept) {
        delete stream;
        return NULL;
    }
    return stream;
}

/* Whether a filter can be loaded here; its name for streams is then kept. */
int Network::load_FilterFunc(const char* shared_object, const char* function)
{
    std::string path = shared_object == NULL ? "" : shared_object;
    std::string name = function == NULL ? "" : function, wrong;
    void* library = path.empty() || name.empty() ? NULL : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char* said = path.empty() || name.empty() ? NULL : dlerror();
        wrong = said != NULL ? said : "a file and a function are wanted";
    } else if (dlsym(library, name.c_str()) == NULL ||
               dlsym(library, (name + "_format_string").c_str()) == NULL) {
        wrong = path + " has no " + name + ", or no " + name + "_format_string";
    }
    Engine::Hold hold(*engine_);
    size_t number = engine_->loaded_filters.size();
    if (wrong.empty() && (number == MRNET_FILTERS_MAX || !engine_->is_front_end()))
        wrong = "no more filters can be loaded here";
    if (!wrong.empty()) {
        error(ERR_INTERNAL, engine_->rank, "%s", wrong.c_str());
        if (library != NULL)
            dlclose(library);
        return -1;
    }
    char* whole = path.find('/') == std::string::npos ? NULL : realpath(path.c_str(), NULL);
    engine_->filter_lines += (whole == NULL ? path : whole) + " " + name + "\n";
    free(whole);
    bool has_state = dlsym(library, (name + "_get_state").c_str()) != NULL;
    engine_->loaded_filters.push_back((has_state ? "/mrnet-state" : "/mrnet") +
                                      std::to_string(number));
    return SFILTER_TIMEOUT + 1 + int(number);
}

int Network::load_FilterFuncs(const char* shared_object, const std::vector<const char*>& functions,
                              std::vector<int>& filter_ids)
{
    int loaded = 0;
    filter_ids.clear();
    for (const char* function : functions) {
        filter_ids.push_back(load_FilterFunc(shared_object, function));
        loaded += filter_ids.back() >= 0;
    }
    return loaded == int(functions.size()) ? 0 : -1;
}

/* What the adaptor is told: which network, which filters, which tree and which of its back-ends. */
std::string Engine::filter_text(const std::set<Rank>& members)
{
    return std::to_string(getpid()) + "-" + std::to_string(reinterpret_cast<uintptr_t>(this)) +
           "\n" + filter_lines + "\n" + told_tree(*this, members);
}

}  // namespace MRN
