/*
 * What a tool has that includes nothing but mrnet/MRNet.h.
 */
#include "mrnet/MRNet.h"

#include "../check.h"

static int from_c()
{
    char text[64], copy[64];
    snprintf(text, sizeof text, "%" PRIu64 " %" PRId64 " %" PRIx32, UINT64_MAX, INT64_MIN, UINT32_MAX);
    memcpy(copy, text, sizeof copy);
    DEMAND(strcmp(copy, "18446744073709551615 -9223372036854775808 ffffffff") == 0);
    DEMAND(strncmp(text, "18", 2) == 0 && strstr(text, "ffff") != NULL && strtol("7", NULL, 10) == 7);
    DEMAND(sqrt(16.0) > 3.9 && sqrt(16.0) < 4.1 && std::pow(2.0, 3.0) > 7.9 && fabs(-1.5) > 1.4);
    int* memory = static_cast<int*>(malloc(sizeof *memory));
    *memory = 7;
    assert(memory != NULL && *memory == 7);
    free(memory);
    errno = 0;
    DEMAND(getenv("NO_SUCH_VARIABLE") == NULL && errno == 0 && INT_MAX > SHRT_MAX);
    return 0;
}

static int from_the_system()
{
    struct timeval now;
    struct stat found;
    struct hostent* host = gethostbyname("localhost");
    char name[XPLAT_MAX_HOSTNAME_LEN];
    DEMAND(host != NULL && host->h_addrtype == AF_INET);
    DEMAND(usleep(1) == 0 && getpid() > 0 && gettimeofday(&now, NULL) == 0 && now.tv_sec > 0);
    DEMAND(gethostname(name, sizeof name) == 0 && stat("/", &found) == 0 && S_ISDIR(found.st_mode));
    int one = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
    DEMAND(one >= 0 && fcntl(one, F_GETFL) >= 0 && close(one) == 0);
    DEMAND(ntohl(inet_addr("127.0.0.1")) == INADDR_LOOPBACK && TCP_NODELAY != 0);
    return 0;
}

static int types()
{
    bool is_good = true, is_bad = false;
    bool_t number = -7;
    char_t letter = 'a';
    uchar_t byte = 255;
    XPlat_Port port = MRN::UnknownPort;
    XPlat_Socket socket = -1;
    DEMAND(is_good != is_bad && number == -7 && sizeof number == sizeof(int));
    DEMAND(letter + byte == 352 && port == 65535 && socket < 0);
    return 0;
}

static int from_cpp()
{
    std::map<std::string, int> map;
    std::set<int> set;
    std::vector<int> vector(3, 1);
    std::list<int> list(vector.begin(), vector.end());
    std::ostringstream stream;
    map["one"] = 1;
    set.insert(map["one"]);
    stream << set.size() << std::pair<int, int>(2, 3).second;
    std::cout << stream.str() << std::endl;
    DEMAND(stream.str() == "13" && list.size() == 3);
    DEMAND(std::count(vector.begin(), vector.end(), 1) == 3);
    XPlat::Monitor monitor;
    XPlat::Mutex mutex;
    DEMAND(monitor.Lock() == 0 && monitor.Unlock() == 0 && mutex.Lock() == 0 && mutex.Unlock() == 0);
    return 0;
}

int main()
{
    ALSO(from_c());
    ALSO(from_the_system());
    ALSO(types());
    return from_cpp();
}
