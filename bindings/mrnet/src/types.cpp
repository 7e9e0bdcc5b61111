/*
 * Constants, errors, settings, and what is written for people.
 */
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "contents.hpp"
#include "mrnet/Error.h"
#include "mrnet/FilterIds.h"
#include "mrnet/ParadynFilterIds.h"
#include "xplat/words.hpp"

namespace MRN {

const int MIN_OUTPUT_LEVEL = 0;
const int MAX_OUTPUT_LEVEL = 5;
int CUR_OUTPUT_LEVEL = MIN_OUTPUT_LEVEL;
char* MRN_DEBUG_LOG_DIRECTORY = NULL;

const unsigned int CTL_STRM_ID = 1u << 30;
const unsigned int TOPOL_STRM_ID = CTL_STRM_ID + 1;
const unsigned int PORT_STRM_ID = CTL_STRM_ID + 2;
const unsigned int INTERNAL_STRM_BASE_ID = CTL_STRM_ID + 3;
const unsigned int USER_STRM_BASE_ID = CTL_STRM_ID + 10;

FilterId TFILTER_NULL = 0;
FilterId TFILTER_SUM = 1;
FilterId TFILTER_AVG = 2;
FilterId TFILTER_MAX = 3;
FilterId TFILTER_MIN = 4;
FilterId TFILTER_ARRAY_CONCAT = 5;
FilterId TFILTER_TOPO_UPDATE = 6;
FilterId TFILTER_TOPO_UPDATE_DOWNSTREAM = 7;
FilterId TFILTER_INT_EQ_CLASS = 8;
FilterId TFILTER_PERFDATA = 9;
FilterId SFILTER_DONTWAIT = 50;
FilterId SFILTER_WAITFORALL = 51;
FilterId SFILTER_TIMEOUT = 52;

FilterId TFILTER_SAVE_LOCAL_CLOCK_SKEW_UPSTREAM = 60000;
FilterId TFILTER_SAVE_LOCAL_CLOCK_SKEW_DOWNSTREAM = 60001;
FilterId TFILTER_GET_CLOCK_SKEW = 60002;
FilterId TFILTER_PD_UINT_EQ_CLASS = 60003;

const char TOPOLOGY_VARIABLE[] = "SAPWOOD_MRNET_TOPOLOGY";

std::string filter_name(int id, const std::vector<std::string>& loaded)
{
    static const char* const NAMES[] = {"null",        "sum",  "average", "max",     "min",
                                        "concatenate", "null", "null",    "number-classes", "usage"};
    const int known = int(sizeof NAMES / sizeof *NAMES);
    if (id >= 0 && id < known)
        return NAMES[id];
    const int first = SFILTER_TIMEOUT + 1;
    if (id >= first && id - first < int(loaded.size()))
        return loaded[size_t(id - first)];
    return "";
}

void get_Version(int& major, int& minor, int& revision)
{
    major = MRNET_VERSION_MAJOR;
    minor = MRNET_VERSION_MINOR;
    revision = MRNET_VERSION_REV;
}

void set_OutputLevel(int level)
{
    if (level < MIN_OUTPUT_LEVEL)
        level = MIN_OUTPUT_LEVEL;
    CUR_OUTPUT_LEVEL = level > MAX_OUTPUT_LEVEL ? MAX_OUTPUT_LEVEL : level;
}

namespace {

FILE* output = NULL;

}  // namespace

int mrn_printf_init(FILE* file)
{
    output = file;
    return 0;
}

int mrn_printf(const char* file, int line, const char* function, FILE* to, const char* format, ...)
{
    FILE* where = to != NULL ? to : output != NULL ? output : stderr;
    va_list values;
    va_start(values, format);
    if (file != NULL)
        fprintf(where, "%s:%d: %s: ", file, line, function == NULL ? "" : function);
    int length = vfprintf(where, format, values);
    va_end(values);
    fflush(where);
    return length;
}

void say(int level, const char* format, ...)
{
    if (level > CUR_OUTPUT_LEVEL)
        return;
    char text[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    fprintf(output != NULL ? output : stderr, "mrnet %d: %s\n", int(getpid()), text);
}

ErrorDef errors[] = {
    {ERR_NONE, ERR_INFO, ERR_IGNORE, "no error"},
    {ERR_TOPOLOGY_FORMAT, ERR_CRIT, ERR_ALERT, "the topology cannot be read"},
    {ERR_TOPOLOGY_CYCLE, ERR_CRIT, ERR_ALERT, "the topology has a cycle"},
    {ERR_TOPOLOGY_NOTCONNECTED, ERR_CRIT, ERR_ALERT, "the topology is not one tree"},
    {ERR_NETWORK_FAILURE, ERR_CRIT, ERR_ALERT, "the network did not start or has failed"},
    {ERR_FORMATSTR, ERR_ERR, ERR_ALERT, "a format string does not fit"},
    {ERR_PACKING, ERR_ERR, ERR_ALERT, "values cannot be packed or unpacked"},
    {ERR_INTERNAL, ERR_CRIT, ERR_ALERT, "a fault of the library or a wrong use of it"},
    {ERR_SYSTEM, ERR_ERR, ERR_ALERT, "the system has failed this process"},
    {ERR_CODE_LAST, ERR_ERR, ERR_IGNORE, "no such error"},
};

Error::Error() : code_(ERR_NONE) {}

Error::~Error() {}

bool Error::has_Error() const
{
    return code_ != ERR_NONE;
}

ErrorCode Error::get_Error() const
{
    return code_;
}

/* A text that stays, as MRNet's do: tools keep the pointer. The texts of errors are few; should they
   ever be many, the last are good until the next error. */
static const char* lasting(const std::string& text)
{
    static const size_t TEXTS_MAX = 4096;
    static std::mutex lock;
    static std::set<std::string>* texts = new std::set<std::string>;
    std::lock_guard<std::mutex> guard(lock);
    if (texts->size() >= TEXTS_MAX && texts->count(text) == 0)
        return text.c_str();
    return texts->insert(text).first->c_str();
}

const char* Error::get_ErrorStr(ErrorCode code) const
{
    if (code == code_ && code != ERR_NONE)
        return lasting(text_);
    return errors[code >= ERR_NONE && code < ERR_CODE_LAST ? code : ERR_CODE_LAST].msg;
}

void Error::perror(const char* prefix) const
{
    fprintf(stderr, "%s: %s\n", prefix == NULL ? "" : prefix, get_ErrorStr(code_));
}

void Error::error(ErrorCode code, Rank rank, const char* format, ...) const
{
    char text[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    code_ = code;
    text_ = text;
    say(1, "rank %u: %s: %s", rank, errors[code].msg, text);
}

ErrorCode code_of(const sapwood_error_t& error)
{
    switch (error.code) {
    case SAPWOOD_OK: return ERR_NONE;
    case SAPWOOD_ERROR_TOPOLOGY:
        if (strstr(error.text, "cycle") != NULL || strstr(error.text, "own child") != NULL ||
            strstr(error.text, "every node has a parent") != NULL)
            return ERR_TOPOLOGY_CYCLE;
        return strstr(error.text, "root") != NULL || strstr(error.text, "no parent") != NULL
                   ? ERR_TOPOLOGY_NOTCONNECTED
                   : ERR_TOPOLOGY_FORMAT;
    case SAPWOOD_ERROR_FORMAT: return ERR_FORMATSTR;
    case SAPWOOD_ERROR_USAGE:
        return strncmp(error.text, "values:", 7) == 0 ? ERR_PACKING : ERR_INTERNAL;
    case SAPWOOD_ERROR_NO_VALUE: return code_of_filter(error.text);
    case SAPWOOD_ERROR_SYSTEM: return ERR_SYSTEM;
    case SAPWOOD_ERROR_FILTER:
    case SAPWOOD_ERROR_INTERNAL: return ERR_INTERNAL;
    default: return ERR_NETWORK_FAILURE;
    }
}

ErrorCode code_of_filter(const char* text)
{
    return strchr(text, '%') != NULL || strstr(text, "format") != NULL ? ERR_FORMATSTR
                                                                       : ERR_INTERNAL;
}

Settings::Settings(const std::map<std::string, std::string>* attributes)
{
    if (attributes != NULL)
        attributes_ = *attributes;
}

std::string Settings::text(const char* name, const char* other_name) const
{
    for (const char* each : {name, other_name}) {
        auto found = each == NULL ? attributes_.end() : attributes_.find(each);
        if (found != attributes_.end())
            return found->second;
    }
    for (const char* each : {name, other_name}) {
        const char* value = each == NULL ? NULL : getenv(each);
        if (value != NULL && *value != '\0')
            return value;
    }
    return "";
}

std::vector<std::string> Settings::words(const char* name) const
{
    return XPlat::words_of(text(name));
}

int Settings::number(const char* name, int otherwise) const
{
    std::string value = text(name);
    char* end = NULL;
    long number = strtol(value.c_str(), &end, 10);
    return value.empty() || *end != '\0' || number < 0 || number > 1000000 ? otherwise
                                                                           : int(number);
}

std::string local_host()
{
    char name[256];
    if (gethostname(name, sizeof name) != 0)
        return "localhost";
    name[sizeof name - 1] = '\0';
    return name;
}

std::string runtime_folder()
{
    const char* given = getenv("XDG_RUNTIME_DIR");
    std::string folder = given != NULL && *given == '/'
                             ? std::string(given) + "/sapwood"
                             : "/tmp/sapwood-" + std::to_string(geteuid());
    struct stat found;
    mkdir(folder.c_str(), 0700);
    if (lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) ||
        found.st_uid != geteuid() || (found.st_mode & 077) != 0)
        return "";
    return folder;
}

std::string attach_file(Port port)
{
    std::string folder = runtime_folder();
    return folder.empty() ? "" : folder + "/mrnet-" + std::to_string(port);
}

}  // namespace MRN
