/* The bytes of an image that a program loads, which is PTX, a fat binary, or machine code. The driver's interface does
   not pass the size of an image. */
#define _GNU_SOURCE
#include "images.h"

#include "compilers/linking.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRAPPER = 0x466243B1, FAT_BINARY = 0xBA55ED50, CHUNK = 1 << 16, MOST_PARTS = 4096 };
static const size_t MOST_BYTES = 1u << 30;

/* Copy memory up to the end of the readable bytes. Return the number of copied bytes. */
static size_t copied(void *target, const void *source, size_t size) {
    struct iovec here = {target, size}, there = {(void *)source, size};
    ssize_t count = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    return count < 0 ? 0 : (size_t)count;
}

static CUresult whole(const unsigned char *image, size_t size, struct bytes *found) {
    REQUIRE(size > 0 && size <= MOST_BYTES, INVALID_IMAGE);
    found->data = malloc(size + 1);
    REQUIRE(found->data != NULL, OUT_OF_MEMORY);
    for (found->size = 0; found->size < size; found->size += CHUNK) {
        size_t part = size - found->size < CHUNK ? size - found->size : CHUNK;
        if (copied(found->data + found->size, image + found->size, part) != part) {
            free(found->data);
            return INVALID_IMAGE;
        }
    }
    found->size = size;
    return SUCCESS;
}

static CUresult text(const unsigned char *image, struct bytes *found) {
    unsigned char chunk[4096];
    size_t size = 0;
    for (size_t part; size < MOST_BYTES; size += part) {
        size_t room = sizeof chunk - (uintptr_t)(image + size) % sizeof chunk;
        part = copied(chunk, image + size, room);
        REQUIRE(part > 0, INVALID_IMAGE);
        const unsigned char *end = memchr(chunk, 0, part);
        if (end != NULL)
            return whole(image, size + (end - chunk), found);
    }
    return INVALID_IMAGE;
}

static CUresult elf(const unsigned char *image, struct bytes *found) {
    unsigned char head[64];
    uint64_t sections;
    uint16_t size, count;
    REQUIRE(copied(head, image, sizeof head) == sizeof head, INVALID_IMAGE);
    memcpy(&sections, head + 0x28, 8);
    memcpy(&size, head + 0x3A, 2);
    memcpy(&count, head + 0x3C, 2);
    REQUIRE(sections < MOST_BYTES, INVALID_IMAGE);
    return whole(image, sections + (size_t)size * count, found);
}

static CUresult unwrapped(const void *image, struct bytes *found) {
    struct {
        uint32_t magic;
        uint16_t version, size;
        uint64_t rest;
    } fat;
    uint32_t magic;
    REQUIRE(copied(&magic, image, sizeof magic) == sizeof magic, INVALID_IMAGE);
    if (magic == FAT_BINARY) {
        REQUIRE(copied(&fat, image, sizeof fat) == sizeof fat && fat.rest < MOST_BYTES, INVALID_IMAGE);
        return whole(image, fat.size + fat.rest, found);
    }
    return memcmp(&magic, "\x7f"
                          "ELF", 4) == 0 ? elf(image, found) : text(image, found);
}

/* Link the device code of several files (nvcc -rdc=true). `parts` contains the fat binary of each file, and ends with
   NULL. */
static CUresult linked(const void *const *parts, struct bytes *found) {
    struct link *link = new_link();
    CUresult result = link != NULL ? SUCCESS : OUT_OF_MEMORY;
    for (int i = 0; i < MOST_PARTS && result == SUCCESS; ++i) {
        const void *part;
        struct bytes image = {NULL, 0};
        if (copied(&part, &parts[i], sizeof part) != sizeof part || part == NULL)
            break;
        result = unwrapped(part, &image);
        if (result == SUCCESS)
            result = add_input(link, image.data, image.size);
        free(image.data);
    }
    if (result == SUCCESS)
        result = complete_link(link);
    if (result == SUCCESS) {
        *found = link->linked;
        link->linked = (struct bytes){NULL, 0};
    }
    if (link != NULL)
        end_link(link);
    return result;
}

CUresult image_bytes(const void *image, struct bytes *found) {
    enum { OF_SEVERAL_FILES = 2 };
    struct {
        uint32_t magic, version;
        const void *data;
        const void *const *parts; /* In version 2, `data` is linked from the inputs in `parts`. */
    } wrapper = {0, 0, NULL, NULL};
    *found = (struct bytes){NULL, 0};
    REQUIRE(image != NULL, INVALID_VALUE);
    REQUIRE(copied(&wrapper, image, sizeof wrapper.magic) == sizeof wrapper.magic, INVALID_IMAGE);
    if (wrapper.magic != WRAPPER)
        return unwrapped(image, found);
    REQUIRE(copied(&wrapper, image, sizeof wrapper) == sizeof wrapper && wrapper.data != NULL, INVALID_IMAGE);
    return wrapper.version == OF_SEVERAL_FILES && wrapper.parts != NULL ? linked(wrapper.parts, found)
                                                                        : unwrapped(wrapper.data, found);
}

CUresult file_bytes(const char *path, struct bytes *found) {
    *found = (struct bytes){NULL, 0};
    REQUIRE(path != NULL, INVALID_VALUE);
    FILE *file = fopen(path, "rb");
    REQUIRE(file != NULL, 301); /* The number 301 is CUDA_ERROR_FILE_NOT_FOUND. */
    long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    rewind(file);
    if (size > 0 && (size_t)size <= MOST_BYTES && (found->data = malloc(size)) != NULL)
        found->size = fread(found->data, 1, size, file);
    fclose(file);
    return found->size > 0 ? SUCCESS : INVALID_IMAGE;
}
