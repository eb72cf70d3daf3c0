/* The capture of the memory that a kernel may access. The library copies the memory before a launch, and the changed
   pages after the launch. A kernel may access the allocations to which its parameters point, the allocations to which
   words in such memory point, and the variables of its module. The driver reports the extent of the allocation of an
   address. Each file is a sequence of parts, which have a tag, a size and bytes (on_gpu/capture_file.py). */
#define _GNU_SOURCE
#include "on_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PART_LAUNCH = 1,   /* PART_LAUNCH contains struct fixed. */
    PART_BLOCK = 2,    /* PART_BLOCK contains the parameters. */
    PART_PLACES = 3,   /* PART_PLACES contains struct parameter for each parameter. */
    PART_STACK = 4,    /* PART_STACK contains JSON. */
    PART_VARIABLE = 5, /* PART_VARIABLE contains an address, a size and a name. */
    PART_MEMORY = 6,   /* PART_MEMORY contains an address, whether it is a block of torch's allocator, and bytes. */
    PART_RESULT = 7,   /* PART_RESULT contains the result of the driver, and nanoseconds. */
    PART_CHANGED = 8   /* PART_CHANGED contains an address and bytes. */
};
enum { PAGE = 4096, MOST_RANGES = 4096, MOST_SCANNED = 1 << 16, MOST_LOOKUPS = 1 << 14 };

struct fixed {
    uint64_t target;
    uint32_t grid[3], block[3], cluster[3], shared_bytes, flags, padding;
};

static struct range ranges[MOST_RANGES];
static char is_block[MOST_RANGES];
static size_t count, scanned, lookups;
static uint64_t total;

void end_capture(void) {
    for (size_t i = 0; i < count; ++i)
        free(ranges[i].before);
    count = scanned = lookups = 0;
    total = 0;
}

static FILE *file_of(uint64_t launch, const char *end) {
    char path[4096];
    const char *folder = session_folder();
    if (folder == NULL || snprintf(path, sizeof path, "%s/captures/%ld-%llu.%s", folder, (long)getpid(),
                                   (unsigned long long)launch, end) >= (int)sizeof path)
        return NULL;
    return fopen(path, "wbe");
}

static void put(FILE *file, uint32_t tag, const void *head, size_t head_size, const void *data, size_t size) {
    uint32_t start[2] = {tag, 0};
    uint64_t whole = head_size + size;
    fwrite(start, sizeof start, 1, file);
    fwrite(&whole, sizeof whole, 1, file);
    if (head_size > 0)
        fwrite(head, head_size, 1, file);
    if (size > 0)
        fwrite(data, size, 1, file);
}

static int is_closed_well(FILE *file) {
    int failed = ferror(file);
    return fclose(file) == 0 && !failed;
}

/* ---- the memory ---- */

static int has(uint64_t address) {
    for (size_t i = 0; i < count; ++i)
        if (address >= ranges[i].address && address - ranges[i].address < ranges[i].size)
            return 1;
    return 0;
}

static CUresult copied(unsigned char *target, uint64_t address, size_t size) {
    return CALL(cuMemcpyDtoH_v2, target, address, size);
}

/* Remove the ranges inside a new range. Return whether another range overlaps the new range partly. */
static int overlaps(uint64_t address, uint64_t size) {
    for (size_t i = 0; i < count; ++i) {
        uint64_t first = ranges[i].address, last = first + ranges[i].size;
        if (last <= address || address + size <= first)
            continue;
        if (first < address || address + size < last)
            return 1;
        total -= ranges[i].size;
        free(ranges[i].before);
        ranges[i] = ranges[--count];
        is_block[i--] = is_block[count];
        scanned = 0;
    }
    return 0;
}

/* Copy a range. Return 0 if there is not enough space. */
static int add(uint64_t address, uint64_t size, int is_torch) {
    if (size == 0 || has(address) || overlaps(address, size))
        return 1;
    if (count == MOST_RANGES || size > the_limits()->most_bytes - total)
        return 0;
    unsigned char *before = malloc(size);
    if (before == NULL)
        return 0;
    if (copied(before, address, size) != SUCCESS) {
        /* The range is not memory of the GPU, or is not mapped as a whole. The simulator reports an access to the
           range. */
        free(before);
        return 1;
    }
    ranges[count] = (struct range){address, size, before};
    is_block[count++] = is_torch;
    total += size;
    return 1;
}

static const uint64_t *block_at(const struct description *known, uint64_t address) {
    size_t first = 0, last = known->blocks_count;
    while (first < last) {
        size_t middle = (first + last) / 2;
        if (known->blocks[2 * middle] <= address)
            first = middle + 1;
        else
            last = middle;
    }
    const uint64_t *found = first > 0 ? &known->blocks[2 * (first - 1)] : NULL;
    return found != NULL && address - found[0] < found[1] ? found : NULL;
}

static int has_block(const struct description *known, uint64_t address, size_t size) {
    for (size_t i = 0; i < known->blocks_count; ++i)
        if (known->blocks[2 * i] >= address && known->blocks[2 * i] - address < size)
            return 1;
    return 0;
}

/* Add the allocation to which a word may point. Return 0 if there is not enough space. */
static int follow(uint64_t word, const struct description *known) {
    CUdeviceptr base;
    size_t size;
    if (word < 1u << 16 || word >> 48 != 0 || has(word) || lookups >= MOST_LOOKUPS)
        return 1;
    const uint64_t *block = block_at(known, word);
    if (block != NULL)
        return add(block[0], block[1], 1);
    ++lookups;
    if (CALL(cuMemGetAddressRange_v2, &base, &size, word) != SUCCESS || has_block(known, base, size))
        return 1; /* The address is not in memory of the GPU, or is in a free part of torch's memory. */
    return add(base, size, 0);
}

static int follow_all(const unsigned char *data, size_t size, const struct description *known) {
    for (size_t at = 0; at + 8 <= size; at += 8) {
        uint64_t word;
        memcpy(&word, data + at, sizeof word);
        if (word >> 32 != 0 && !follow(word, known))
            return 0;
    }
    return 1;
}

/* Add the variables of the kernel's module. */
static int add_variables(FILE *file, const struct target *target) {
    void *module = target->variables_count > 0 ? module_of(target) : NULL;
    const char *name = target->variables;
    for (uint32_t i = 0; module != NULL && i < target->variables_count; ++i, name += strlen(name) + 1) {
        uint64_t place[2];
        size_t size;
        if (CALL(cuModuleGetGlobal_v2, &place[0], &size, module, name) != SUCCESS)
            continue; /* The variable has internal linkage, and the session assigns an address to it. */
        place[1] = size;
        put(file, PART_VARIABLE, place, sizeof place, name, strlen(name));
        if (!add(place[0], size, 0))
            return 0;
    }
    return 1;
}

static int add_reachable(const struct stated *stated, const struct description *known) {
    if (!follow_all(stated->block_bytes, stated->block_size, known))
        return 0;
    for (; scanned < count; ++scanned) {
        size_t size = ranges[scanned].size < MOST_SCANNED ? ranges[scanned].size : MOST_SCANNED;
        if (ranges[scanned].address % 8 == 0 && !follow_all(ranges[scanned].before, size, known))
            return 0;
    }
    return 1;
}

/* ---- the files ---- */

static void put_launch(FILE *file, const struct target *target, const struct stated *stated,
                       const struct description *known) {
    struct fixed fixed = {target->number, {0}, {0}, {0}, stated->shared_bytes, stated->flags, 0};
    memcpy(fixed.grid, stated->grid, sizeof fixed.grid);
    memcpy(fixed.block, stated->block, sizeof fixed.block);
    memcpy(fixed.cluster, stated->cluster, sizeof fixed.cluster);
    put(file, PART_LAUNCH, &fixed, sizeof fixed, NULL, 0);
    put(file, PART_BLOCK, NULL, 0, stated->block_bytes, stated->block_size);
    put(file, PART_PLACES, NULL, 0, target->parameters, target->parameters_count * sizeof *target->parameters);
    if (known->stack != NULL)
        put(file, PART_STACK, NULL, 0, known->stack, known->stack_size);
}

/* Write the first file of a launch. Return 0 if its memory is too large, or if the session needs no more launches of
   this kernel. */
int is_captured(struct target *target, const struct stated *stated, uint64_t launch, struct description *known) {
    uint64_t numbers[2] = {target->number, launch};
    struct bytes reply;
    FILE *file = file_of(launch, "before");
    if (file == NULL)
        return 0;
    put_launch(file, target, stated, known);
    int is_whole = add_variables(file, target) && add_reachable(stated, known);
    for (size_t i = 0; is_whole && i < count; ++i) {
        uint64_t head[2] = {ranges[i].address, is_block[i]};
        put(file, PART_MEMORY, head, sizeof head, ranges[i].before, ranges[i].size);
    }
    is_whole = is_closed_well(file) && is_whole;
    if (!is_whole)
        return 0;
    int is_said = say(SAY_BEFORE, numbers, sizeof numbers, NULL, 0, &reply);
    target->is_judged = is_said && reply.size == 1 && reply.data[0];
    free(reply.data);
    return is_said;
}

static void put_changed(FILE *file, const struct range *range, const unsigned char *after) {
    for (size_t at = 0; at < range->size;) {
        size_t first = at;
        while (at < range->size) {
            size_t size = range->size - at < PAGE ? range->size - at : PAGE;
            if (memcmp(range->before + at, after + at, size) == 0)
                break;
            at += size;
        }
        if (at > first) {
            uint64_t address = range->address + first;
            put(file, PART_CHANGED, &address, sizeof address, after + first, at - first);
        }
        at += PAGE;
    }
}

/* Write the second file of a launch, with the pages that the launch has changed. */
void write_after(uint64_t launch, CUresult result, uint64_t nanoseconds) {
    FILE *file = file_of(launch, "after");
    uint64_t head[2] = {result, nanoseconds};
    if (file == NULL)
        return;
    for (size_t i = 0; i < count && head[0] == SUCCESS; ++i) {
        unsigned char *after = malloc(ranges[i].size);
        CUresult moved = after != NULL ? copied(after, ranges[i].address, ranges[i].size) : OUT_OF_MEMORY;
        if (moved == SUCCESS)
            put_changed(file, &ranges[i], after);
        else
            head[0] = moved;
        free(after);
    }
    put(file, PART_RESULT, head, sizeof head, NULL, 0);
    is_closed_well(file);
}
