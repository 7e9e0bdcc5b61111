/* Making and mapping shared memory; see segment.h. */
#define _GNU_SOURCE
#include "segment.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_limit.h"
#include "settings.h"

static const char MAGIC[8] = "SWBYPASS";
enum { PAGE = 4096 };

static uint64_t up_to(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static struct bypass_header shape_for(uint32_t size, uint64_t cookie, bool for_world)
{
    struct bypass_header h = {.version = BYPASS_VERSION, .size = size, .cookie = cookie};
    memcpy(h.magic, MAGIC, sizeof h.magic);
    h.ring = bypass_settings.ring;
    h.chunk_bytes = bypass_settings.chunk_bytes;
    uint64_t places = (uint64_t)h.ring * size;
    h.slots = up_to(sizeof h + size * sizeof(struct bypass_member), 128);
    h.nodes = h.slots + h.ring * sizeof(struct bypass_slot);
    h.world = up_to(h.nodes + places * sizeof(struct bypass_node), 64);
    uint64_t world = for_world ? size * (sizeof(struct bypass_lateness) + sizeof(struct bypass_account)) : 0;
    h.edges = up_to(h.world + world, 64);
    h.edge_ranks = for_world && bypass_settings_ask() && size <= BYPASS_EDGE_RANKS_MAX ? size : 0;
    h.chunks = up_to(h.edges + h.edge_ranks * h.edge_ranks * sizeof(struct bypass_edge), PAGE);
    h.bytes = up_to(h.chunks + 2 * places * h.chunk_bytes, PAGE);
    return h;
}

static void point_into(struct bypass_segment *s, struct bypass_header *h)
{
    unsigned char *base = (unsigned char *)h;
    *s = (struct bypass_segment){
        .header = h,
        .members = (struct bypass_member *)(base + sizeof *h),
        .slots = (struct bypass_slot *)(base + h->slots),
        .nodes = (struct bypass_node *)(base + h->nodes),
        .chunks = base + h->chunks,
        .lateness = (struct bypass_lateness *)(base + h->world),
        .accounts = (struct bypass_account *)(base + h->world + h->size * sizeof(struct bypass_lateness)),
        .edges = {.at = h->edge_ranks > 0 ? (struct bypass_edge *)(base + h->edges) : NULL,
                  .ranks = (uint32_t)h->edge_ranks},
        .size = h->size,
        .ring = h->ring,
        .chunk_bytes = h->chunk_bytes,
    };
}

int bypass_segment_make(struct bypass_segment *segment, uint32_t size, uint64_t cookie, bool for_world)
{
    struct bypass_header h = shape_for(size, cookie, for_world);
    int fd = sapwood_memory_file("sapwood-bypass", h.bytes);
    if (fd < 0)
        return -1;
    /* What every instance needs is taken now, where a lack of memory is an answer and not a
     * signal; the chunks, when large operands come. */
    bool made = fallocate(fd, 0, 0, (off_t)h.chunks) == 0 &&
                fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
    void *memory = made ? mmap(NULL, h.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (memory == MAP_FAILED) {
        close(fd);
        return -1;
    }
    memcpy(memory, &h, sizeof h);
    point_into(segment, memory);
    return fd;
}

bool bypass_segment_map(struct bypass_segment *segment, int pid, int fd, uint64_t cookie)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    int own = open(path, O_RDWR | O_CLOEXEC);
    struct stat status;
    struct bypass_header h;
    bool ours = own >= 0 && fstat(own, &status) == 0 && pread(own, &h, sizeof h, 0) == (ssize_t)sizeof h &&
                memcmp(h.magic, MAGIC, sizeof h.magic) == 0 && h.version == BYPASS_VERSION && h.cookie == cookie &&
                (uint64_t)status.st_size == h.bytes;
    void *memory = ours ? mmap(NULL, h.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0) : MAP_FAILED;
    if (own >= 0)
        close(own);
    if (memory == MAP_FAILED)
        return false;
    point_into(segment, memory);
    return true;
}

void bypass_segment_unmap(struct bypass_segment *segment)
{
    munmap(segment->header, segment->header->bytes);
    segment->header = NULL;
}
