/* The network between clusters: real packets, held back as long as a long line would take.
 *
 *   wanem NODES CONFIGURATION
 *
 * Kernels of small machines often have nothing that holds a packet for a time. So each host's eth0 is
 * a TUN device, and this one process is the switch between all of them. It adds latency, jitter, the
 * rates of the hosts' interfaces and of the lines between sites with bounded queues, and loss.
 * Programs on the hosts notice nothing but the time.
 *
 * NODES has a line "namespace address" for each host. CONFIGURATION has lines of these kinds, times
 * one way, and is read again at SIGHUP; SIGUSR1 prints counters.
 *
 *   bias_us N                     subtracted from every delay: what two wake-ups cost anyway
 *   gso 0|1                       1: up to 64 KiB cross at once, fast; 0: packets as on a wire
 *   mtu N
 *   site NAME FIRST LAST          hosts by number, inclusive
 *   lan SITE DELAY_US RATE_MBIT QUEUE_MS LOSS_PERCENT [JITTER_US]
 *                                 within a site; the rate is that of each host's interface, 0 for none
 *   card FIRST LAST RATE_MBIT     hosts whose interfaces have another rate than their site's, 0 for none
 *   wan SITE SITE DELAY_US RATE_MBIT QUEUE_MS LOSS_PERCENT [JITTER_US]
 *                                 a line that all hosts of both share, each direction by itself
 *   cut HOST, heal HOST           by number
 *   cutsite SITE SITE, healsite SITE SITE
 *
 * IPv4 unicast only, one thread. How accurate it is: docs/testbed.md.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    HOSTS_MAX = 1024,
    SITES_MAX = 32,
    NAME_BYTES = 64,
    HEADER_BYTES = sizeof(struct virtio_net_hdr),
    PACKET_BYTES_MAX = HEADER_BYTES + 65536,
    READS_PER_HOST = 16,   /* before the next host has its turn */
    SPARE_PACKETS_MAX = 4096,
    IP_HEADER_BYTES = 20,
};

typedef uint64_t nanoseconds;

struct line { nanoseconds delay, jitter, queue_max; double per_byte; uint32_t loss; };
struct host {
    char space[NAME_BYTES];
    uint32_t address;
    int tun, site, is_cut, has_card;
    double card_per_byte;
    nanoseconds out_free, in_free;
};
struct packet { nanoseconds due; uint64_t number; int to, length; struct packet *next; unsigned char *bytes; };

static struct host hosts[HOSTS_MAX];
static int host_count, has_gso = 1, mtu = 1500;
static double bias_us;
static char site_names[SITES_MAX][NAME_BYTES];
static int site_count;
static struct line lines[SITES_MAX][SITES_MAX];
static nanoseconds line_free[SITES_MAX][SITES_MAX];
static char is_site_cut[SITES_MAX][SITES_MAX];
static uint32_t network;                /* upper half of every address */
static int16_t host_of[65536];          /* by the lower half */
static struct { unsigned long in, out, lost, full, unknown, failed; } counted;

static nanoseconds now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (nanoseconds)time.tv_sec * 1000000000u + (nanoseconds)time.tv_nsec;
}

static void fail(const char *what) { perror(what); exit(1); }

static void *memory(void *old, size_t bytes) {
    void *made = realloc(old, bytes);
    if (!made) fail("wanem: memory");
    return made;
}

/* --- Packets that wait, in a heap by the time at which they are due. --- */

static struct packet **heap;
static int waiting, heap_room;

static int is_before(const struct packet *a, const struct packet *b) {
    return a->due < b->due || (a->due == b->due && a->number < b->number);
}

static void push(struct packet *packet) {
    if (waiting == heap_room) {
        heap_room = heap_room ? 2 * heap_room : 1024;
        heap = memory(heap, (size_t)heap_room * sizeof *heap);
    }
    int at = waiting++;
    for (; at && is_before(packet, heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = packet;
}

static struct packet *pop(void) {
    struct packet *first = heap[0], *last = heap[--waiting];
    int at = 0, child;
    while ((child = 2 * at + 1) < waiting) {
        if (child + 1 < waiting && is_before(heap[child + 1], heap[child])) child++;
        if (!is_before(heap[child], last)) break;
        heap[at] = heap[child];
        at = child;
    }
    if (waiting) heap[at] = last;
    return first;
}

static struct packet *spare;
static int spare_count;

static struct packet *take_spare(void) {
    struct packet *packet = spare;
    if (packet) {
        spare = packet->next;
        spare_count--;
    } else {
        packet = memory(NULL, sizeof *packet);
        packet->bytes = memory(NULL, PACKET_BYTES_MAX);
    }
    return packet;
}

static void give_back(struct packet *packet) {
    if (spare_count < SPARE_PACKETS_MAX) {
        packet->next = spare;
        spare = packet;
        spare_count++;
    } else {
        free(packet->bytes);
        free(packet);
    }
}

/* xorshift64 (Marsaglia, 2003), upper half. */
static uint32_t chance(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

/* --- The configuration. --- */

static int site(const char *name) {
    for (int at = 0; at < site_count; at++)
        if (!strcmp(site_names[at], name)) return at;
    return -1;
}

static double per_byte_of(double rate) { return rate > 0 ? 8e3 / rate : 0; }

static struct line line_of(double delay_us, double rate, double queue_ms, double loss, double jitter_us) {
    double held = delay_us > bias_us ? delay_us - bias_us : 0;
    return (struct line){
        .delay = (nanoseconds)(held * 1e3),
        .jitter = (nanoseconds)(jitter_us * 1e3),
        .queue_max = (nanoseconds)(queue_ms * 1e6),
        .per_byte = per_byte_of(rate),
        .loss = (uint32_t)(loss / 100 * 4294967295.0),
    };
}

/* One line of it; whether it is one. */
static int configure(const char *text) {
    char one[NAME_BYTES], other[NAME_BYTES];
    double delay, rate, queue, loss, jitter = 0;
    int first, last, number;
    if (text[0] == '#' || text[0] == '\n') return 1;
    if (sscanf(text, "bias_us %lf", &bias_us) == 1) return 1;
    if (sscanf(text, "gso %d", &has_gso) == 1 || sscanf(text, "mtu %d", &mtu) == 1) return 1;
    if (sscanf(text, "site %63s %d %d", one, &first, &last) == 3) {
        if (site_count == SITES_MAX || first < 0) return 0;
        strcpy(site_names[site_count], one);
        for (int at = first; at <= last && at < host_count; at++) hosts[at].site = site_count;
        site_count++;
        return 1;
    }
    if (sscanf(text, "lan %63s %lf %lf %lf %lf %lf", one, &delay, &rate, &queue, &loss, &jitter) >= 5) {
        if ((first = site(one)) < 0) return 0;
        lines[first][first] = line_of(delay, rate, queue, loss, jitter);
        return 1;
    }
    if (sscanf(text, "card %d %d %lf", &first, &last, &rate) == 3) {
        if (first < 0) return 0;
        for (int at = first; at <= last && at < host_count; at++) {
            hosts[at].has_card = 1;
            hosts[at].card_per_byte = per_byte_of(rate);
        }
        return 1;
    }
    if (sscanf(text, "wan %63s %63s %lf %lf %lf %lf %lf", one, other, &delay, &rate, &queue, &loss, &jitter) >= 6) {
        if ((first = site(one)) < 0 || (last = site(other)) < 0) return 0;
        lines[first][last] = lines[last][first] = line_of(delay, rate, queue, loss, jitter);
        return 1;
    }
    if (sscanf(text, "cut %d", &number) == 1 || sscanf(text, "heal %d", &number) == 1) {
        if (number < 0 || number >= host_count) return 0;
        hosts[number].is_cut = text[0] == 'c';
        return 1;
    }
    if (sscanf(text, "cutsite %63s %63s", one, other) == 2 || sscanf(text, "healsite %63s %63s", one, other) == 2) {
        if ((first = site(one)) < 0 || (last = site(other)) < 0) return 0;
        is_site_cut[first][last] = is_site_cut[last][first] = text[0] == 'c';
        return 1;
    }
    return 0;
}

/* Reads all of it; how many lines are none. */
static int load(const char *path) {
    char text[256];
    int wrong = 0, number = 0;
    FILE *file = fopen(path, "r");
    if (!file) { perror(path); return 1; }
    site_count = 0;
    memset(lines, 0, sizeof lines);
    memset(is_site_cut, 0, sizeof is_site_cut);
    for (int at = 0; at < host_count; at++) hosts[at].is_cut = hosts[at].site = hosts[at].has_card = 0;
    while (fgets(text, sizeof text, file)) {
        number++;
        if (!configure(text)) {
            wrong++;
            fprintf(stderr, "wanem: %s line %d: %s", path, number, text);
        }
    }
    fclose(file);
    return wrong;
}

/* --- The hosts' ends. --- */

static void set_interface(int control, const char *name, uint32_t address) {
    struct ifreq request = {0};
    struct sockaddr_in *in = (void *)&request.ifr_addr;
    strcpy(request.ifr_name, name);
    if (address) {
        in->sin_family = AF_INET;
        in->sin_addr.s_addr = address;
        if (ioctl(control, SIOCSIFADDR, &request)) fail("wanem: address");
        in->sin_addr.s_addr = htonl(0xffff0000);
        if (ioctl(control, SIOCSIFNETMASK, &request)) fail("wanem: netmask");
        request.ifr_mtu = mtu;
        if (ioctl(control, SIOCSIFMTU, &request)) fail("wanem: mtu");
        request.ifr_qlen = 1000;
        if (ioctl(control, SIOCSIFTXQLEN, &request)) fail("wanem: queue");
    }
    memset(&request.ifr_ifru, 0, sizeof request.ifr_ifru);
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    if (ioctl(control, SIOCSIFFLAGS, &request)) fail("wanem: up");
}

static int plug_in(const struct host *host) {
    char path[NAME_BYTES + 16] = "/run/netns/";
    int header = HEADER_BYTES;
    strcat(path, host->space);
    int space = open(path, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET)) fail(path);
    close(space);
    int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR};
    strcpy(request.ifr_name, "eth0");
    if (tun < 0 || ioctl(tun, TUNSETIFF, &request)) fail("wanem: tun");
    if (ioctl(tun, TUNSETVNETHDRSZ, &header)) fail("wanem: header");
    /* Sums are never computed for packets that do not leave the machine. */
    if (ioctl(tun, TUNSETOFFLOAD, TUN_F_CSUM | (has_gso ? TUN_F_TSO4 | TUN_F_TSO6 : 0))) fail("wanem: offload");
    int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    set_interface(control, "lo", 0);
    set_interface(control, "eth0", host->address);
    close(control);
    return tun;
}

/* --- The way of a packet. --- */

/* A host's interface: as those of its site, but for the rate where it has one of its own. */
static struct line card_of(const struct host *host) {
    struct line card = lines[host->site][host->site];
    if (host->has_card) card.per_byte = host->card_per_byte;
    return card;
}

/* When a sender of this rate has sent `bytes` bytes that are queued at `from`. Advances the time at which
   it is free. 0 if its queue is full. */
static nanoseconds sent(nanoseconds from, int bytes, const struct line *line, nanoseconds *is_free) {
    if (!line->per_byte) return from;
    nanoseconds begin = *is_free > from ? *is_free : from;
    if (line->queue_max && begin - from > line->queue_max) return 0;
    return *is_free = begin + (nanoseconds)(bytes * line->per_byte);
}

static void take(int from, nanoseconds time, const unsigned char *bytes, int length) {
    const unsigned char *ip = bytes + HEADER_BYTES;
    uint32_t address = 0;
    int to = -1;
    counted.in++;
    if (length >= HEADER_BYTES + IP_HEADER_BYTES && ip[0] >> 4 == 4) {
        memcpy(&address, ip + 16, 4);
        address = ntohl(address);
        to = address >> 16 == network ? host_of[address & 0xffff] : -1;
    }
    if (to < 0) { counted.unknown++; return; }
    struct host *sender = &hosts[from], *receiver = &hosts[to];
    int here = sender->site, there = receiver->site, size = length - HEADER_BYTES;
    const struct line *way = &lines[here][there];
    if (sender->is_cut || receiver->is_cut || is_site_cut[here][there] || (way->loss && chance() < way->loss)) {
        counted.lost++;
        return;
    }
    /* The host's interface, the line that the sites share, its latency, and the other's interface. */
    const struct line first = card_of(sender), last = card_of(receiver);
    nanoseconds due = sent(time, size, &first, &sender->out_free);
    if (due && here != there) due = sent(due, size, way, &line_free[here][there]);
    if (due) {
        due += way->delay;
        if (way->jitter) due += chance() % way->jitter;
        /* Its first byte came so much before its last. */
        nanoseconds duration = (nanoseconds)(size * last.per_byte);
        due = sent(due > duration ? due - duration : 0, size, &last, &receiver->in_free);
    }
    if (!due) { counted.full++; return; }
    static uint64_t number;
    struct packet *packet = take_spare();
    memcpy(packet->bytes, bytes, (size_t)length);
    packet->length = length;
    packet->to = to;
    packet->due = due;
    packet->number = number++;
    push(packet);
}

static void deliver(void) {
    nanoseconds time = now();
    while (waiting && heap[0]->due <= time) {
        struct packet *packet = pop();
        if (write(hosts[packet->to].tun, packet->bytes, (size_t)packet->length) < 0) counted.failed++;
        else counted.out++;
        give_back(packet);
    }
}

static volatile sig_atomic_t is_to_load, is_to_tell, is_to_end;

static void on_signal(int number) {
    if (number == SIGHUP) is_to_load = 1;
    else if (number == SIGUSR1) is_to_tell = 1;
    else is_to_end = 1;
}

static void wait_and_read(int poller) {
    static unsigned char buffer[PACKET_BYTES_MAX];
    struct epoll_event events[64];
    struct timespec left, *limit = NULL;
    if (waiting) {
        nanoseconds time = now(), due = heap[0]->due > time ? heap[0]->due - time : 0;
        left = (struct timespec){.tv_sec = (time_t)(due / 1000000000u), .tv_nsec = (long)(due % 1000000000u)};
        limit = &left;
    }
    int ready = epoll_pwait2(poller, events, 64, limit, NULL);
    for (int at = 0; at < ready; at++) {
        int host = (int)events[at].data.u32;
        for (int turn = 0; turn < READS_PER_HOST; turn++) {
            ssize_t length = read(hosts[host].tun, buffer, sizeof buffer);
            if (length <= 0) break;
            take(host, now(), buffer, (int)length);
            if (waiting && heap[0]->due <= now()) break;
        }
    }
}

static void read_nodes(const char *path) {
    char text[256], space[NAME_BYTES], address[NAME_BYTES];
    FILE *file = fopen(path, "r");
    if (!file) fail(path);
    memset(host_of, -1, sizeof host_of);
    while (fgets(text, sizeof text, file) && host_count < HOSTS_MAX) {
        if (sscanf(text, "%63s %63s", space, address) != 2) continue;
        struct host *host = &hosts[host_count];
        strcpy(host->space, space);
        host->address = inet_addr(address);
        network = ntohl(host->address) >> 16;
        host_of[ntohl(host->address) & 0xffff] = (int16_t)host_count++;
    }
    fclose(file);
}

int main(int count, char **words) {
    if (count != 3) {
        fprintf(stderr, "usage: wanem NODES CONFIGURATION\n");
        return 2;
    }
    read_nodes(words[1]);
    if (load(words[2])) return 2;
    int poller = epoll_create1(EPOLL_CLOEXEC), own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    for (int at = 0; at < host_count; at++) {
        hosts[at].tun = plug_in(&hosts[at]);
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)at};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, hosts[at].tun, &event)) fail("wanem: epoll");
    }
    /* A kill of all processes of a host must not include this one. */
    if (own < 0 || setns(own, CLONE_NEWNET)) fail("wanem: namespace");
    prctl(PR_SET_TIMERSLACK, 1);
    struct sched_param priority = {.sched_priority = 10};
    if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &priority))
        perror("wanem: no real-time priority, so less accurate");
    struct sigaction action = {.sa_handler = on_signal};
    for (size_t at = 0; at < 4; at++) sigaction((int[]){SIGHUP, SIGUSR1, SIGTERM, SIGINT}[at], &action, NULL);
    printf("ready %d hosts\n", host_count);
    fflush(stdout);
    while (!is_to_end) {
        if (is_to_load) { is_to_load = 0; load(words[2]); }
        if (is_to_tell) {
            is_to_tell = 0;
            printf("in %lu out %lu lost %lu queue-full %lu unknown %lu failed %lu waiting %d\n", counted.in,
                   counted.out, counted.lost, counted.full, counted.unknown, counted.failed, waiting);
            fflush(stdout);
        }
        deliver();
        wait_and_read(poller);
    }
    return 0;
}
